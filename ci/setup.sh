#!/usr/bin/env bash
# Installs what ci/packages.txt lists, on Debian 12 or newer and Ubuntu 24.04 or newer, and what ci/python.txt lists in an
# environment of its own, build/python. Does nothing, and touches no network, when all of it is there. Exit status: 0 all there, 3 something lacks and cannot be installed from here (says what and how).
# SLACKTIER_SKIP_SETUP=1 skips it, for systems whose packages have other names.
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=ci/apt.sh
. "$here/apt.sh"
mapfile -t packages < <(listed "$here/packages.txt")

say() { printf 'setup: %s\n' "$*" >&2; }

if [ "${SLACKTIER_SKIP_SETUP:-0}" = 1 ]; then
  say "skipped (SLACKTIER_SKIP_SETUP=1)"
  exit 0
fi

# Python packages that the systems do not have, for tests; those are skipped, and say so, where they cannot be had.
python_packages() {
  local environment=$here/../build/python wanted
  mapfile -t wanted < <(listed "$here/python.txt")
  # Of the system's version, which the programs embed, whatever else is on the PATH.
  local version='import sys; print(sys.version_info[:2])'
  if [ "$("$environment/bin/python3" -c "$version" 2>/dev/null)" = "$(/usr/bin/python3 -c "$version")" ] &&
    "$environment/bin/python3" -c "import ${wanted[*]/%/;import }sys" 2>/dev/null; then return; fi
  if ! /usr/bin/python3 -m venv --clear "$environment" >&2 || ! "$environment/bin/python3" -m pip -q --disable-pip-version-check --retries 2 install "${wanted[@]}" >&2; then
    say "without the Python packages ${wanted[*]} (pip could not install them in build/python): tests that need them are skipped"
  fi
}

# Sets `system` to the name of this system, and succeeds when the package names of the list are right for it.
supported_system() {
  local ID="" VERSION_ID="" PRETTY_NAME="" minimum
  # shellcheck disable=SC1091
  if [ -r /etc/os-release ]; then . /etc/os-release; fi
  system=${PRETTY_NAME:-an unknown system}
  command -v dpkg-query >/dev/null || return 1
  case $ID in
    debian) minimum=12 ;;
    ubuntu) minimum=24.04 ;;
    *) return 1 ;;
  esac
  # Debian testing and unstable carry no number.
  [ -z "$VERSION_ID" ] || dpkg --compare-versions "$VERSION_ID" ge "$minimum"
}

if ! supported_system; then
  say "this is $system; packages are installed for Debian 12 or newer and Ubuntu 24.04 or newer only."
  say "Install what these provide there: ${packages[*]}"
  say "then set SLACKTIER_SKIP_SETUP=1 and start again."
  exit 3
fi

find_missing "$here/packages.txt"
if [ ${#missing[@]} = 0 ]; then
  say "all ${#packages[@]} packages are there"
  python_packages
  exit 0
fi

if ! may_install; then
  say "these packages lack, and installing them takes root (sudo without a password is not granted here): ${missing[*]}"
  say "As root, run: apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
  exit 3
fi

say "installing ${missing[*]}"
if ! install_missing; then
  say "apt-get could not install: ${missing[*]}"
  say "Its messages above say why (no network, no mirror, or on Ubuntu the component 'universe' is off). Mend it, then run as root:"
  say "apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
  exit 3
fi
say "installed ${#missing[@]} packages"
python_packages

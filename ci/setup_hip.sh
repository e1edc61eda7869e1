#!/usr/bin/env bash
# Installs what ci/hip.txt lists; does nothing when all of it is there. Exit status: 0 all there, 77 it cannot be had here (says why):
# HIP is then left out, and all else goes on. SLACKTIER_SKIP_HIP=1 leaves it out anyway.
set -uo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)

leave_out() {
  printf 'SKIPPED: HIP is not built: %s\n' "$*" >&2
  exit 77
}

[ "${SLACKTIER_SKIP_HIP:-0}" = 1 ] && leave_out "SLACKTIER_SKIP_HIP=1"
command -v dpkg-query >/dev/null || leave_out "this is no Debian; with a ROCm: cmake --preset hip -DSLACKTIER_ROCM_ROOT=/opt/rocm"
mapfile -t packages < <(sed -e 's/#.*//' "$here/hip.txt" | awk 'NF {print $1}')
missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
[ ${#missing[@]} = 0 ] && exit 0

as_root=()
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null && sudo -n true 2>/dev/null || leave_out "installing takes root: apt-get install ${missing[*]}"
  as_root=(sudo -n)
fi
apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@" </dev/null >&2
}
# The lists may be there already, from ci/setup.sh.
apt install -y --no-install-recommends "${missing[@]}" || { apt update && apt install -y --no-install-recommends "${missing[@]}"; } ||
  leave_out "apt-get could not install ${missing[*]} (its messages above say why)"

# shellcheck shell=bash
# How the set-up scripts install a list of packages; they source this. A list has one package a line, then what uses it.

listed() { sed -e 's/#.*//' "$1" | awk 'NF {print $1}'; }  # LIST

# Sets `missing` to what is not installed of a list.
find_missing() {  # LIST
  local package
  missing=()
  while read -r package; do
    dpkg-query -W -f='${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
  done < <(listed "$1")
}

# Succeeds where packages can be installed: as root, or by a sudo that asks for no password.
as_root=()
may_install() {
  [ "$(id -u)" != 0 ] || return 0
  command -v sudo >/dev/null && sudo -n true 2>/dev/null || return 1
  as_root=(sudo -n)
}

# apt's own output goes to stderr: what a caller prints on stdout is a result.
apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@" </dev/null >&2
}

# Installs `missing`. The lists of what there is are fetched where there are none, or where they turn out to be old.
install_missing() {
  compgen -G '/var/lib/apt/lists/*_Packages*' >/dev/null || apt update || return 1
  apt install -y --no-install-recommends "${missing[@]}" || { apt update && apt install -y --no-install-recommends "${missing[@]}"; }
}

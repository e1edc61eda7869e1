#!/usr/bin/env bash
# Installs what ci/hip.txt lists; does nothing when all of it is there. Exit status: 0 all there, 77 it cannot be had here (says why):
# HIP is then left out, and all else goes on. SLACKTIER_SKIP_HIP=1 leaves it out anyway.
set -uo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=ci/apt.sh
. "$here/apt.sh"

leave_out() {
  printf 'SKIPPED: HIP is not built: %s\n' "$*" >&2
  exit 77
}

[ "${SLACKTIER_SKIP_HIP:-0}" = 1 ] && leave_out "SLACKTIER_SKIP_HIP=1"
command -v dpkg-query >/dev/null || leave_out "this is no Debian; with a ROCm: cmake --preset hip -DSLACKTIER_ROCM_ROOT=/opt/rocm"
find_missing "$here/hip.txt"
[ ${#missing[@]} = 0 ] && exit 0
may_install || leave_out "installing takes root: apt-get install ${missing[*]}"
install_missing || leave_out "apt-get could not install ${missing[*]} (its messages above say why)"

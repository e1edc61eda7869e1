#!/usr/bin/env bash
# Installs what ci/guest.txt lists and unpacks a Debian kernel in build/guest, for the tests in a virtual machine; does nothing when all
# of it is there. The kernel is never installed: this machine's own and its boot are left alone. Exit status: 0 all there, 77 it cannot
# be had here (says why): those tests are then skipped, and all else goes on. SLACKTIER_SKIP_GUEST=1 leaves them out anyway.
#   build/guest/kernel        what qemu starts
#   build/guest/linux-image   the unpacked package, for its modules
set -uo pipefail
PATH=$PATH:/usr/sbin:/sbin
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=ci/apt.sh
. "$here/apt.sh"
out=$here/../build/guest

leave_out() {
  printf 'SKIPPED: no tests in a virtual machine: %s\n' "$*" >&2
  exit 77
}

[ "${SLACKTIER_SKIP_GUEST:-0}" = 1 ] && leave_out "SLACKTIER_SKIP_GUEST=1"
[ "$(uname -m)" = x86_64 ] || leave_out "the guest is made for x86-64, this machine is $(uname -m)"
ID=""
# shellcheck disable=SC1091
[ -r /etc/os-release ] && ID=$(. /etc/os-release && printf %s "$ID")
[ "$ID" = debian ] || leave_out "the guest takes Debian's kernel package, and this is ${ID:-an unknown system}"

find_missing "$here/guest.txt"
if [ ${#missing[@]} != 0 ]; then
  may_install || leave_out "installing takes root: apt-get install ${missing[*]}"
  install_missing || leave_out "apt-get could not install ${missing[*]} (its messages above say why)"
fi

mkdir -p "$out"
work=$(mktemp -d "$out/unpacking-XXXXXX") || leave_out "nothing can be written to build/guest"
trap 'rm -rf "$work"' EXIT
if [ ! -d "$out/linux-image" ]; then
  package=$(apt-cache depends linux-image-amd64 2>/dev/null | sed -n 's/^ *Depends: //p' | head -n1)
  [ -n "$package" ] || leave_out "apt knows no linux-image-amd64; run apt-get update"
  # As root apt would drop to a user of its own, which cannot write here.
  (cd "$work" && apt-get -qq -o APT::Sandbox::User="$(id -un)" -o Acquire::Retries=3 download "$package") >&2 ||
    leave_out "apt-get could not download $package (its messages above say why)"
  dpkg-deb -x "$work"/linux-image-*.deb "$work/tree" || leave_out "$package cannot be unpacked"
  kernels=("$work"/tree/boot/vmlinuz-*)
  version=${kernels[0]##*/vmlinuz-}
  modules=$work/tree
  [ -d "$modules/lib/modules/$version" ] || modules=$work/tree/usr  # where Debian 13 has them
  depmod -b "$modules" "$version" || leave_out "depmod failed for $package"
  rm -f "$out/kernel"
  mv "$work/tree" "$out/linux-image"
fi

# The ELF kernel inside vmlinuz: qemu starts it directly, which saves emulating the kernel's own unpacking, ten seconds and more.
unpack_kernel() {  # FROM TO
  local magic unpack offset
  while read -r magic unpack; do
    for offset in $(LC_ALL=C grep -aboP "$magic" "$1" | cut -d: -f1); do
      # shellcheck disable=SC2086
      tail -c "+$((offset + 1))" "$1" | $unpack >"$2" 2>/dev/null || true
      [ "$(head -c 4 "$2" | tr -d '\0')" != $'\x7fELF' ] || return 0
    done
  done <<'END'
\xFD7zXZ\x00 xz -dc --single-stream
\x28\xB5\x2F\xFD zstd -dc
\x1F\x8B\x08 gzip -dc
END
  cp "$1" "$2"  # qemu starts it all the same, only later
}
if [ ! -f "$out/kernel" ]; then
  kernels=("$out"/linux-image/boot/vmlinuz-*)
  unpack_kernel "${kernels[0]}" "$work/kernel" && mv "$work/kernel" "$out/kernel" || leave_out "the kernel cannot be unpacked"
fi

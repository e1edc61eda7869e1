#!/usr/bin/env bash
# Packs the file system of a tiny Linux guest in which one command runs under a stock Debian kernel that has
#   - the NVMe driver, for disks that are attached to it;
#   - a software RoCE device "rxe0": the kernel's real RDMA stack, without RDMA hardware, on a network card where one is attached.
# Nothing is installed, and this machine's own kernel is left alone. ci/setup_guest.sh comes first.
#
#   build.sh -g GUEST -o INITRAMFS [-b BINARY]... [-f FILE[:DEST]]... [-m MODULE]... 'COMMAND'
#
#   -g GUEST      the folder that ci/setup_guest.sh filled
#   -o INITRAMFS  file to write
#   -b BINARY     program to add: a name on PATH, or a path. It lands in the guest's /usr/bin, each shared library that
#                 ldd names at its path on this machine
#   -f FILE       file or folder to add, at the same path or at DEST: data, plug-ins that are opened at run time (with
#                 their shared libraries too)
#   -m MODULE     one more kernel module to load before COMMAND
#   COMMAND       shell command line, run as root by dash in the guest's temporary folder; its exit status is the guest's
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin

usage() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0" >&2; exit 2; }
die() { echo "tests/guest/build.sh: $*" >&2; exit 1; }

guest='' out='' binaries=() files=() modules=(nvme dummy virtio_pci virtio_net rdma_rxe rdma_ucm)
while getopts g:o:b:f:m: option; do
  case $option in
    g) guest=$OPTARG ;;
    o) out=$OPTARG ;;
    b) binaries+=("$OPTARG") ;;
    f) files+=("$OPTARG") ;;
    m) modules+=("$OPTARG") ;;
    *) usage ;;
  esac
done
shift $((OPTIND - 1))
if [ $# -ne 1 ] || [ -z "$guest" ] || [ -z "$out" ]; then usage; fi
command=$1

work=$(mktemp -d "$out.XXXXXX")
trap 'rm -rf "$work"' EXIT
tree=$(realpath "$guest/linux-image")
kernels=("$tree"/boot/vmlinuz-*)
version=${kernels[0]##*/vmlinuz-}
[ -d "$tree/lib/modules/$version" ] || tree=$tree/usr  # where Debian 13 has them

root=$work/file-system
mkdir -p "$root"/{dev,proc,sys,tmp,run,root,etc,share} "$root"/usr/{bin,sbin,lib,lib64}
for name in bin sbin lib lib64; do ln -s "usr/$name" "$root/$name"; done  # as in Debian

put() {  # FROM DEST: copy, following links, unless it is there already
  [ ! -e "$root$2" ] || return 0
  mkdir -p "$(dirname "$root$2")"
  cp -L --preserve=mode,timestamps "$1" "$root$2"
}
put_libraries() {  # ELF: the shared libraries it needs
  local needed library
  needed=$(ldd "$1" 2>/dev/null) || return 0  # static, a script, or just data
  if grep -q 'not found' <<<"$needed"; then die "$1: $needed"; fi
  # Lines like "libx.so => /path (0x...)" and, for the loader, "/path (0x...)".
  sed -n 's/^.*[[:space:]]\(\/[^ ]*\) (0x.*/\1/p' <<<"$needed" |
    while read -r library; do put "$library" "$library"; done
}
put_binary() {  # NAME or PATH
  local path
  path=$(command -v "$1") || die "no program $1"
  rm -f "$root/usr/bin/${path##*/}"  # ours rather than busybox's
  put "$path" "/usr/bin/${path##*/}"
  put_libraries "$path"
}
put_files() {  # FILE[:DEST]
  local from=${1%%:*} to file
  [ -e "$from" ] || die "no file $from"
  from=$(realpath -s "$from")
  to=$from
  [[ $1 != *:* ]] || to=${1#*:}
  find -L "$from" -type f | while read -r file; do
    put "$file" "$to${file#"$from"}"
    put_libraries "$file"
  done
}

put "$(command -v busybox)" /usr/bin/busybox
"$root/usr/bin/busybox" --list | while read -r applet; do
  [ "$applet" = busybox ] || ln -s busybox "$root/usr/bin/$applet"
done
ln -s ../bin/busybox "$root/usr/sbin/modprobe"  # the kernel's own path to it
# dash, because Debian's busybox sh would prefer busybox's applets to programs on PATH.
for binary in dash ip rdma "${binaries[@]}"; do put_binary "$binary"; done
ln -sf dash "$root/usr/bin/sh"
# Opened at run time, unseen by ldd: the verbs provider, and what a thread's exit needs.
libraries=/usr/lib/x86_64-linux-gnu
for file in /etc/libibverbs.d/rxe.driver "$libraries"/libibverbs/librxe-rdmav*.so "$libraries/libgcc_s.so.1" "${files[@]}"; do
  put_files "$file"
done
echo 'root:x:0:0:root:/root:/bin/sh' >"$root/etc/passwd"
echo 'root:x:0:' >"$root/etc/group"
echo '127.0.0.1 localhost' >"$root/etc/hosts"

# Kernel modules, with all that they depend on. rxe asks for crc32 only by the algorithm's name; the 9p ones are for /share.
for module in "${modules[@]}" crc32_generic crc32_pclmul 9pnet_virtio 9p; do
  modprobe -d "$tree" -S "$version" --show-depends "$module" | sed -n 's/^insmod \([^ ]*\).*/\1/p'
done | sort -u >"$work/modules"
while read -r file; do put "$file" "${file#"$tree"}"; done <"$work/modules"
find "$root/lib/modules/" -name '*.ko.xz' -exec xz -d {} +
cp "$tree/lib/modules/$version"/modules.{order,builtin,builtin.modinfo} "$root/lib/modules/$version/"
depmod -b "$root" "$version"

printf '%s\n' "$command" >"$root/etc/guest-command"
printf '#!/bin/sh\nmodules="%s"\n' "${modules[*]}" >"$root/init"
cat >>"$root/init" <<'END'
export PATH=/usr/bin:/usr/sbin HOME=/root TERM=dumb
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devpts pts /dev/pts
mount -t tmpfs shm /dev/shm
mount -t tmpfs tmp /tmp
ln -s /proc/self/fd /dev/fd
exec </dev/null >/dev/ttyS0 2>&1
stty -onlcr </dev/ttyS0  # plain line ends for the host
ulimit -l unlimited

# The status goes to the second serial port. Leaving the first one flushes it.
finish() { exec >/dev/ttyS1 2>&1; echo "$1"; sync; exec >/dev/null; poweroff -f; sleep 60; }
need() { "$@" || { echo "guest: failed: $*"; finish 125; }; }

for module in $modules; do need modprobe "$module"; done
# rxe needs a network device below it; without a card a dummy one does, for packets to our own address are looped back inside rxe. An
# MTU of 9000 allows each RDMA path MTU, up to 4096.
need ip link set lo up
[ -e /sys/class/net/eth0 ] || need ip link add eth0 type dummy
number=0
for address in $(sed -n 's/.*guest_addresses=\([0-9.,]*\).*/\1/p' /proc/cmdline | tr , ' '); do
  [ -e "/sys/class/net/eth$number" ] || break
  need ip link set "eth$number" mtu 9000
  need ip addr add "$address/24" dev "eth$number"
  need ip link set "eth$number" up
  need rdma link add "rxe$number" type rxe netdev "eth$number"
  number=$((number + 1))
done
for module in 9pnet_virtio 9p; do need modprobe "$module"; done
need mount -t 9p -o trans=virtio,version=9p2000.L,msize=131072 share /share
tries=0  # disks turn up a bit later
until [ "$(ls -d /sys/block/nvme* 2>/dev/null | wc -l)" -ge "$(sed -n 's/.*guest_disks=\([0-9]*\).*/\1/p' /proc/cmdline)" ]; do
  [ $((tries += 1)) -le 300 ] || need false no disk
  sleep 0.1
done

cd /tmp
sh /etc/guest-command
finish $?
END
chmod +x "$root/init"

# Not compressed, for unpacking it would be emulated, too.
(cd "$root" && find . -print0 | cpio --quiet --null -o -H newc -R 0:0) >"$work/initramfs"
mv "$work/initramfs" "$out"

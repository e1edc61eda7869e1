"""A virtual machine for tests of what a container has not: NVMe disks that may be written and pulled out, soft-RoCE, another host.

One boot (some ten seconds, for all of it is emulated) runs many steps:

    outcome = guest.run([guest.Step("devices", "ibv_devices"), ...], programs=["ibv_devices"], disks=[guest.Disk()])
    outcome["devices"].status, .output, .errors

A step is a shell script; what it leaves running in the background (command &) lives on through later steps. Files under /share come
back: outcome.file("NAME"). Where a step is on PEER, a second machine starts beside the first, with two cables between them: eth0 with
192.0.2.1 here and 192.0.2.2 at the peer, and eth1 with 198.51.100.1 and .2, rxe0 and rxe1 upon them, each at a NUMA node of its own.
One machine runs its step while the other waits. Timings inside mean nothing, and on a busy machine all of it may take minutes.

Exit status of a test that calls guest.main(): 0 passed, 77 skipped where no guest can be had (says why), 1 failed.
"""

import dataclasses
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
GUEST = os.path.join(os.path.dirname(os.path.dirname(HERE)), "build", "guest")
PROGRAMS = os.environ.get("SLACKTIER_BIN", "")
BUILD = os.environ.get("SLACKTIER_BUILD", "")

FIRST, PEER = "first", "peer"
NETWORKS = ["192.0.2", "198.51.100"]

RUN_STEPS = """
host=$(sed -n 's/.*guest_host=\\([a-z]*\\).*/\\1/p' /proc/cmdline)
for step in /share/steps/*.sh; do
  name=${step##*/}; name=${name%.sh}
  if [ "${name##*.}" != "$host" ]; then
    until [ -e "/share/steps/$name.status" ]; do sleep 0.1; done
    continue
  fi
  echo "guest: $name"
  ran=0
  dash "$step" >"/share/steps/$name.out" 2>"/share/steps/$name.err" || ran=$?
  echo "$ran" >"/share/steps/$name.ran"
  mv "/share/steps/$name.ran" "/share/steps/$name.status"
done
"""


@dataclasses.dataclass
class Step:
    name: str
    script: str
    host: str = FIRST


@dataclasses.dataclass
class Disk:
    """An NVMe disk, empty at first; /dev/disks/SERIAL in the guest is its block device."""
    serial: str = "guest-nvme"
    mib: int = 256
    sector: int = 512


@dataclasses.dataclass
class Ran:
    status: int
    output: str
    errors: str

    def __str__(self):
        return f"exit {self.status}\n{self.output}{self.errors}"


class Outcome:
    def __init__(self, steps, files, console):
        self.steps, self.files, self.console = steps, files, console

    def __getitem__(self, name):
        return self.steps[name]

    def file(self, name):
        """Bytes of a file that a step left in /share; None when it left none."""
        return self.files.get(name)


class Missing(Exception):
    """No guest can be had here."""


def require():
    """Raises Missing, with the reason, where no guest can be started."""
    if os.uname().machine != "x86_64":
        raise Missing("the guest is made for x86-64")
    for name in ["kernel", "linux-image"]:
        if not os.path.exists(os.path.join(GUEST, name)):
            raise Missing(f"there is no build/guest/{name}: ci/setup_guest.sh makes it, on Debian")
    for program in ["qemu-system-x86_64", "busybox", "cpio"]:
        if not shutil.which(program):
            raise Missing(f"there is no {program}: ci/setup_guest.sh installs it, on Debian")


def run(steps, programs=(), disks=(Disk(),), files=(), modules=(), parameters="", seconds=840, memory_mib=768, cpus=2):
    """Boots, runs the steps one after another, powers off. Raises Missing, or RuntimeError with the console when a step did
    not end in time or the guest failed. `parameters`: of the kernel and its modules, such as nvme.poll_queues=1. Disks are the
    first machine's."""
    require()
    with tempfile.TemporaryDirectory(prefix="guest-", dir=BUILD or None) as scratch:
        share = os.path.join(scratch, "share")
        os.makedirs(os.path.join(share, "steps"))
        # Disks by serial number: which of several comes first is the kernel's choice.
        names = ("mkdir -p /dev/disks\nfor block in /sys/block/nvme*; do\n"
                 "  ln -sf \"/dev/${block##*/}\" \"/dev/disks/$(cat \"$block/device/serial\" | tr -d ' ')\"\ndone\n")
        scripts = [f"{number:03}-{step.name}.{step.host}" for number, step in enumerate(steps)]
        for name, step in zip(scripts, steps):
            with open(os.path.join(share, "steps", name + ".sh"), "w", encoding="utf-8") as file:
                file.write(step.script + "\n")
        build = [os.path.join(HERE, "build.sh"), "-g", GUEST, "-o", os.path.join(scratch, "initramfs")]
        for flag, values in [("-b", programs), ("-f", files), ("-m", modules)]:
            for value in values:
                build += [flag, value]
        subprocess.run([*build, names + RUN_STEPS], check=True, stdin=subprocess.DEVNULL)
        machines = [Machine(FIRST, scratch, share, disks, parameters, memory_mib, cpus)]
        if any(step.host == PEER for step in steps):
            machines.append(Machine(PEER, scratch, share, (), parameters, memory_mib, 1))
        run_machines(machines, seconds)
        ran = {}
        for name, step in zip(scripts, steps):
            path = os.path.join(share, "steps", name)
            if not os.path.exists(path + ".status"):
                told = "".join(f"\n{machine.name}: status {machine.status()}, console:\n{machine.said()}" for machine in machines)
                raise RuntimeError(f"step {step.name} did not end{told}\n{text(path + '.out')}{text(path + '.err')}")
            ran[step.name] = Ran(int(text(path + ".status")), text(path + ".out"), text(path + ".err"))
        left = {}
        for name in os.listdir(share):
            if os.path.isfile(os.path.join(share, name)):
                with open(os.path.join(share, name), "rb") as file:
                    left[name] = file.read()
        return Outcome(ran, left, machines[0].said())


def text(path):
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


class Machine:
    """One qemu, described; started by start()."""

    def __init__(self, name, scratch, share, disks, parameters, memory_mib, cpus):
        self.name, self.scratch, self.process, self.memory_mib, self.cpus = name, scratch, None, memory_mib, cpus
        self.number = 1 if name == FIRST else 2
        addresses = ",".join(f"{network}.{self.number}" for network in NETWORKS)
        self.command = [
            "qemu-system-x86_64", "-machine", "q35",
            # Emulation works everywhere; a hypervisor, even where there is one, may refuse or hang such a guest. All that can be
            # emulated, AVX2 included, short of one more level of page tables.
            "-accel", "tcg,thread=multi", "-cpu", "max,la57=off", "-smp", str(cpus), "-m", str(memory_mib),
            "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none",
            # The second serial port carries the exit status and nothing else, so that nothing printed can pass for it.
            "-serial", "file:" + self.path("console"), "-serial", "file:" + self.path("status"),
            "-kernel", os.path.join(GUEST, "kernel"), "-initrd", os.path.join(scratch, "initramfs"),
            # A panic ends qemu, as -no-reboot has it. The processor's own counter as the clock: to read the others, qemu's main
            # loop has to take a turn.
            "-append", f"console=ttyS0 quiet panic=-1 oops=panic mitigations=off tsc=reliable clocksource=tsc guest_disks={len(disks)} guest_host={name} "
                       f"guest_addresses={addresses} {parameters}",
            "-virtfs", f"local,path={share},mount_tag=share,security_model=none"]
        for number, disk in enumerate(disks):
            image = os.path.join(scratch, f"disk-{number}")
            with open(image, "wb") as file:
                file.truncate(disk.mib << 20)
            self.command += ["-drive", f"file={image},format=raw,if=none,id=disk{number}",
                             "-device", f"nvme,drive=disk{number},serial={disk.serial},logical_block_size={disk.sector},"
                                        f"physical_block_size={max(disk.sector, 512)}"]

    def path(self, what):
        return os.path.join(self.scratch, f"{what}-{self.name}")

    def start(self, cables=()):
        """`cables`: ends of pairs of connected sockets, which carry the networks' frames."""
        network = []
        if cables:
            half = self.memory_mib // 2
            for node in range(2):
                network += ["-object", f"memory-backend-ram,id=memory{node},size={half}M",
                            "-numa", f"node,nodeid={node},memdev=memory{node}" + (f",cpus=0-{self.cpus - 1}" if node == 0 else ""),
                            "-device", f"pxb-pcie,bus=pcie.0,id=bus{node},bus_nr={32 + 32 * node},numa_node={node}",
                            "-device", f"pcie-root-port,id=port{node},bus=bus{node},chassis={1 + node}"]
        for node, cable in enumerate(cables):
            network += ["-netdev", f"socket,id=cable{node},fd={cable.fileno()}",
                        "-device", f"virtio-net-pci,bus=port{node},netdev=cable{node},mac=52:54:00:00:0{node}:0{self.number},romfile="]
        with open(self.path("qemu"), "wb") as said:
            self.process = subprocess.Popen([*self.command, *network], stdin=subprocess.DEVNULL, stdout=said, stderr=said,
                                            pass_fds=[cable.fileno() for cable in cables])

    def said(self):
        return text(self.path("console")) + text(self.path("qemu"))

    def status(self):
        """The guest's exit status; None: it told none."""
        told = "".join(c for c in text(self.path("status")) if c.isdigit())
        return int(told) if told else None


def run_machines(machines, seconds):
    """Runs them until all have ended, at most so long; what still runs then is killed."""
    cables = [socket.socketpair() for _ in NETWORKS] if len(machines) > 1 else []
    until, alone = time.monotonic() + seconds, False
    try:
        for number, machine in enumerate(machines):
            machine.start([ends[number] for ends in cables])
        while (running := [machine.process.poll() is None for machine in machines].count(True)) and time.monotonic() < until:
            if running < len(machines) and not alone:
                alone = True
                until = min(until, time.monotonic() + 60)  # the other has little left to do, or waits in vain
            time.sleep(0.05)
    finally:
        for end in [end for ends in cables for end in ends]:
            end.close()
        for machine in machines:
            if machine.process:
                machine.process.kill()
                machine.process.wait()
    for machine in machines:
        if machine.status() == 125:
            raise RuntimeError(f"the guest ({machine.name}) could not be set up; its console:\n{machine.said()}")


class Checks(unittest.TestCase):
    """Of the steps that `ran`, which a subclass sets to what run() returned, once."""

    def passed(self, name):
        self.assertEqual(self.ran[name].status, 0, str(self.ran[name]))
        return self.ran[name].output

    def refused(self, name, code, *parts):
        ran = self.ran[name]
        self.assertEqual(ran.status, code, str(ran))
        for part in parts:
            self.assertIn(part, ran.errors)


def main():
    """Runs the unittest cases of the calling script."""
    try:
        require()
    except Missing as missing:
        print(f"SKIPPED: {missing}")
        sys.exit(77)
    began = time.monotonic()
    outcome = unittest.main(module="__main__", exit=False).result
    print(f"{time.monotonic() - began:.0f} s")
    sys.exit(0 if outcome.wasSuccessful() else 1)

#!/usr/bin/env python3
"""slacktier-tier on a block device: a loop device, given a serial number in a mount namespace of the test's own.

Needs root and a loop device; skips elsewhere."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.path.join(os.environ["SLACKTIER_BIN"], "slacktier-tier")
SERIAL = "TEST-0042"
SIZE = 32 << 20


def tool(*command):
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)


class Device(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.backing = os.path.join(scratch.name, "backing")
        with open(self.backing, "wb") as file:
            file.truncate(SIZE)
        made = tool("losetup", "--find", "--show", self.backing)
        if made.returncode != 0:
            self.skipTest("no loop device: " + made.stderr)
        self.device = made.stdout.strip()
        self.addCleanup(tool, "losetup", "--detach", self.device)
        number = os.stat(self.device).st_rdev
        number = f"{os.major(number)}:{os.minor(number)}"
        self.sysfs = os.path.realpath(f"/sys/dev/block/{number}")
        # What the kernel tells of the device, and a serial number.
        self.facts = os.path.join(scratch.name, "facts")
        os.makedirs(os.path.join(self.facts, "holders"))
        for name, text in [("dev", number), ("serial", SERIAL)]:
            with open(os.path.join(self.facts, name), "w", encoding="utf-8") as file:
                file.write(text + "\n")

    def run_tier(self, *arguments, code=0, named=True):
        command = [PROGRAM, arguments[0], "--disk", self.device, *arguments[1:]]
        if named:
            script = f'mount --bind "{self.facts}" "{self.sysfs}" && exec "$@"'
            command = ["unshare", "--mount", "sh", "-c", script, "sh", *command]
        ran = tool(*command)
        self.assertEqual(ran.returncode, code, f"{arguments}: {ran.stdout}{ran.stderr}")
        return ran.stdout + ran.stderr

    def write(self, offset, data):
        with open(self.device, "r+b") as file:
            file.seek(offset)
            file.write(data)
            os.fsync(file.fileno())

    def read(self, size=SIZE):
        with open(self.device, "rb") as file:
            return file.read(size)

    def stage(self, *arguments, code=0, named=True, size="24MiB"):
        return self.run_tier("stage", "-q", "--size", size, *arguments, code=code, named=named)

    def test_only_the_named_free_device_is_written(self):
        self.assertIn("no serial number", self.stage("--serial", SERIAL, code=2, named=False))
        self.assertIn("--serial " + SERIAL, self.stage(code=2))
        self.assertIn(f"its serial is {SERIAL}, not TEST-0043", self.stage("--serial", "TEST-0043", code=2))
        self.assertIn("33554432", self.stage("--serial", SERIAL, size="40MiB", code=3))
        self.write(4086, b"SWAPSPACE2")
        self.write(1024, bytes([1, 0, 0, 0, 255, 3]))
        before = self.read()
        self.assertIn("carries swap; --overwrite-filesystem", self.stage("--serial", SERIAL, code=2))
        self.assertEqual(self.read(), before)

        self.stage("--serial", SERIAL, "--overwrite-filesystem")
        self.assertIn("0 of ", self.run_tier("verify", "-q", named=False))
        self.assertEqual(json.loads(self.run_tier("inspect", "--format", "json", named=False))["paths"], [self.device])
        self.assertIn("all of it was staged before", self.stage("--serial", SERIAL))

        self.assertIn("--serial " + SERIAL, self.run_tier("discard", code=2))
        self.run_tier("discard", "--serial", SERIAL)
        self.assertEqual(self.read(1 << 20), bytes(1 << 20))
        self.assertIn("is not an image", self.run_tier("inspect", code=2))

    def test_a_mounted_device_is_never_written(self):
        if shutil.which("mkfs.ext4") is None:
            self.skipTest("no mkfs.ext4")
        self.assertEqual(tool("mkfs.ext4", "-q", self.device).returncode, 0)
        point = os.path.join(os.path.dirname(self.backing), "mounted")
        os.mkdir(point)
        if tool("mount", self.device, point).returncode != 0:
            self.skipTest("nothing can be mounted here")
        try:
            self.assertIn("is mounted at " + point, self.stage("--serial", SERIAL, "--overwrite-filesystem", code=2))
            self.assertIn("is mounted at " + point, self.run_tier("discard", "--serial", SERIAL, code=2))
        finally:
            tool("umount", point)
        self.assertIn("carries ext4", self.stage("--serial", SERIAL, code=2))


if __name__ == "__main__":
    if os.geteuid() != 0 or tool("unshare", "--mount", "true").returncode != 0 or not shutil.which("losetup"):
        print("needs root, losetup and a mount namespace of its own")
        sys.exit(77)
    outcome = unittest.main(exit=False).result
    sys.exit(77 if outcome.wasSuccessful() and len(outcome.skipped) == outcome.testsRun else not outcome.wasSuccessful())

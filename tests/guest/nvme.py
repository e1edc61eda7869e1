#!/usr/bin/env python3
"""slacktier-tier and slacktier-iobench on real NVMe block devices: what may be written, sectors of 4 KiB, reads that are not aligned,
and a disk that is pulled out while it is read."""

import json
import os

import guest

NAMED, LARGE_SECTORS = guest.Disk("guest-nvme", 64), guest.Disk("large-sectors", 64, 4096)
DISK, LARGE = "/dev/disks/guest-nvme", "/dev/disks/large-sectors"
RUN = "slacktier-iobench run -q --format json --batches 30 --rounds 3"

STEPS = [
    guest.Step("unnamed", f"slacktier-tier stage -q --size 24MiB --disk {DISK}"),
    guest.Step("misnamed", f"slacktier-tier stage -q --size 24MiB --disk {DISK} --serial another"),
    guest.Step("create", f"slacktier-iobench run -q --create 16MiB --pages 1:4 --disk {DISK}"),
    guest.Step("empty preflight", f"slacktier-iobench preflight {DISK} --format json"),
    guest.Step("untouched", f"cmp -n 33554432 {DISK} /dev/zero"),
    guest.Step("named", f"slacktier-tier stage -q --size 24MiB --disk {DISK} --serial guest-nvme"),
    guest.Step("verified", f"slacktier-tier verify -q --disk {DISK}"),
    guest.Step("preflight", f"slacktier-iobench preflight {DISK} --format json"),
    guest.Step("run", f"{RUN} --disk {DISK} --pages 1:20,14:10 --threads 2"),
    guest.Step("pread", f"{RUN} --disk {DISK} --pages 1:20,14:10 --source pread --verify-checksum"),
    guest.Step("polled", f"{RUN} --disk {DISK} --pages 1:20,14:10 --iopoll"),
    guest.Step("misaligned", f"{RUN} --disk {LARGE} --unstamped --page-bytes 512 --pages 1:8"),
    guest.Step("aligned", f"{RUN} --disk {DISK} --unstamped --page-bytes 512 --pages 1:8"),
    guest.Step("large named", f"slacktier-tier stage -q --size 24MiB --disk {LARGE} --serial large-sectors"),
    guest.Step("large preflight", f"echo 2 >/sys/block/$(basename $(readlink {LARGE}))/queue/nomerges; slacktier-iobench preflight {LARGE} --format json"),
    guest.Step("large run", f"{RUN} --disk {LARGE} --pages 1:20,14:10 --verify-checksum"),
    guest.Step("memory preflight", "slacktier-iobench preflight . --format json"),
    guest.Step("memory run", f"{RUN} --disk image --create 16MiB --pages 1:4"),
    # Pulled out when reads are known to run: 100 batches of 240 sectors, of which at most 20 only warm up.
    guest.Step("removed", f"""
slacktier-iobench run -q --disk {DISK} --pages 1:20,14:10 --duration 10m --out /share/removed.json &
sectors() {{ awk '{{print $3}}' /sys/block/$(basename $(readlink {DISK}))/stat; }}
began=$(sectors)
until [ $(($(sectors) - began)) -ge 24000 ]; do sleep 0.2; done
echo 1 >/sys/block/$(basename $(readlink {DISK}))/device/device/remove
wait $!
"""),
    guest.Step("absent", f"{RUN} --disk {DISK} --pages 1:4"),
]


class Nvme(guest.Checks):
    @classmethod
    def setUpClass(cls):
        programs = [os.path.join(guest.PROGRAMS, name) for name in ["slacktier-tier", "slacktier-iobench"]]
        cls.ran = guest.run(STEPS, programs, disks=[NAMED, LARGE_SECTORS], parameters="nvme.poll_queues=1")

    def test_only_a_named_disk_is_written(self):
        self.refused("unnamed", 2, "--serial guest-nvme")
        self.refused("misnamed", 2, "its serial is guest-nvme, not another")
        self.refused("create", 2, "nvme")
        self.passed("untouched")
        self.passed("named")
        self.assertIn("0 of ", self.passed("verified"))

    def test_reads(self):
        for name, source in [("run", "uring"), ("pread", "pread"), ("large run", "uring")]:
            envelope = json.loads(self.passed(name))
            result = envelope["results"][0]
            self.assertEqual(result["source"], source)
            self.assertTrue(result["engine"]["direct"])
            self.assertEqual(result["points"][0]["pages_per_rank"], {"1": 20, "14": 10})
            self.assertGreaterEqual(result["points"][0]["t_us"]["14"]["n"], 3)
            disk = envelope["provenance"]["disks"][0]
            self.assertIn("QEMU NVMe", json.dumps(disk))

    def test_polled_completions(self):
        engine = json.loads(self.passed("polled"))["results"][0]["engine"]
        self.assertTrue(engine["iopoll"])
        self.assertIn("completions polled", engine["effective"])

    def test_preflight(self):
        table = json.loads(self.passed("preflight"))
        head = table["head"][0]
        # Behind the image the disk holds zeros, which is no fault of the image's.
        self.assertNotIn("hold zeros", json.dumps(table))
        self.assertIn("100% of the pages sampled hold zeros", self.passed("empty preflight"))
        self.assertIn("sectors 512/512 B", head)
        self.assertIn("direct I/O in effect", head)
        self.assertIn("nomerges is 0", json.dumps(table))
        self.assertIn("echo 2 > /sys/block/nvme", json.dumps(table))
        large = json.loads(self.passed("large preflight"))
        self.assertIn("sectors 4096/4096 B", large["head"][0])
        self.assertNotIn("nomerges", json.dumps(large))
        # The guest's temporary folder is in memory, and its kernel has no direct I/O there.
        self.assertIn("no direct I/O", self.passed("memory preflight"))
        self.refused("memory run", 3, "direct I/O")

    def test_reads_that_are_not_aligned(self):
        self.refused("misaligned", 3, "512", "4096")
        self.assertEqual(json.loads(self.passed("aligned"))["results"][0]["verify"], "unstamped")

    def test_a_disk_that_is_pulled_out(self):
        self.refused("removed", 4, "guest-nvme", "page ")
        kept = json.loads(self.ran.file("removed.json"))
        self.assertIn("read_failed", [warning["code"] for warning in kept["warnings"]])
        self.assertGreater(kept["results"][0]["points"][0]["t_us"]["1"]["n"], 0)
        self.assertIn(self.ran["absent"].status, (2, 4), str(self.ran["absent"]))
        self.assertIn("guest-nvme", self.ran["absent"].errors)


if __name__ == "__main__":
    guest.main()

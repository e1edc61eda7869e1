#!/usr/bin/env python3
"""slacktier-iobench as a user meets it: one load, a sweep, comparisons, preflight, and what each bad input gets."""

import csv
import io
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import numpy
import seccomp

PROGRAM = os.path.join(os.environ["SLACKTIER_BIN"], "slacktier-iobench")


class Iobench(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(dir=os.environ["SLACKTIER_BUILD"])  # temporary folders may lack direct I/O
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.image = cls.path("v41.image")
        cls.call("run", "--disk", cls.image, "--create", "64MiB", "--pages", "1:4", "--batches", "1", "--rounds", "1")

    @classmethod
    def path(cls, name):
        return os.path.join(cls.scratch.name, name)

    @classmethod
    def call(cls, *arguments, code=0):
        ran = subprocess.run([PROGRAM, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True, timeout=120)
        assert ran.returncode == code, f"{arguments}: exit {ran.returncode}, wanted {code}\n{ran.stdout}{ran.stderr}"
        return ran

    def refused(self, code, parts, *arguments):
        ran = self.call(*arguments, code=code)
        errors = [line for line in ran.stderr.split("\n") if line.startswith("slacktier-iobench: error: ")]
        self.assertEqual(len(errors), 1, ran.stderr)
        for part in parts:
            self.assertIn(part, errors[0])

    def run_file(self, name, *arguments, code=0):
        self.call("run", "--disk", self.image, "-q", "--out", self.path(name), *arguments, code=code)
        with open(self.path(name), encoding="utf-8") as file:
            return json.load(file)

    def test_a_load_its_statistics_and_verdicts(self):
        result = self.run_file("run.json", "--pages", "1:30,14:20", "--batches", "700", "--windows", "1:5000,14:5000",
                               "--batch", "8")["results"][0]
        self.assertEqual((result["source"], result["order"], result["verify"]), ("uring", "layer-first", "stamp"))
        self.assertTrue(result["engine"]["direct"])
        self.assertEqual([v["verdict"] for v in result["verdicts"]], ["fits", "fits"])
        self.assertGreater(result["verdicts"][0]["max_batch"], 8)
        point = result["points"][0]
        self.assertEqual(point["pages_per_rank"], {"1": 30, "14": 20})
        # The percentiles again from the raw samples, by numpy: nearest rank.
        raw = numpy.load(os.path.join(self.path("run-samples"), point["samples"]["file"]))
        # At least what was asked for: rounds go on until they agree.
        self.assertEqual(raw.shape, (point["t_us"]["1"]["n"], 2))
        self.assertGreaterEqual(raw.shape[0], 700)
        for column, k in enumerate(["1", "14"]):
            t = point["t_us"][k]
            self.assertAlmostEqual(t["mean"], raw[:, column].mean(), places=6)
            for key, p in [("p50", 50), ("p90", 90), ("p99", 99)]:
                self.assertEqual(t[key], numpy.percentile(raw[:, column], p, method="inverted_cdf"), key)
            self.assertEqual(t["max"], raw[:, column].max())
        self.assertTrue((raw[:, 0] <= raw[:, 1] + 1).mean() > 0.5)

    def test_what_does_not_fit_is_exit_1(self):
        ran = self.call("run", "--disk", self.image, "-q", "--pages", "1:30,14:20", "--batches", "50", "--windows", "1:0.001,14:5000",
                        code=1)
        lines = ran.stdout.split("\n")
        self.assertTrue(lines[0].startswith("layer 1: DOES NOT FIT its 0.001 ms window"), lines[0])
        self.assertTrue(lines[1].startswith("layer 14: "), lines[1])

    def test_paced_ranks_tenants_and_wrappers(self):
        result = self.run_file("paced.json", "--pages", "1:10", "--batches", "20", "--period-ms", "5", "--ranks", "2", "--tenants", "3",
                               "--wrap", "delayed:latency_us=2000", "--threads", "2", "--order", "interleaved")["results"][0]
        self.assertEqual((result["pacing"], result["ranks_on_disk"], result["tenants"], result["threads"], result["order"]),
                         ("paced", 2, 3, 2, "interleaved"))
        point = result["points"][0]
        # The delay counts from the submission to the source, T from the first page's to the system, later on a busy machine.
        self.assertGreaterEqual(point["response_us"]["1"]["min"], 2000)
        self.assertGreaterEqual(point["response_us"]["1"]["mean"], point["t_us"]["1"]["mean"])

    def test_neighbours_on_the_disk(self):
        result = self.run_file("tenants.json", "--pages", "1:10", "--batches", "20", "--tenant-processes", "3", "--tenants", "2",
                               "--background-write", "5")
        self.assertEqual(result["results"][0]["tenants"], 6)
        labels = " ".join(result["settings"]["labels"])
        self.assertIn("3 processes of their own", labels)
        self.assertIn("MB/s were written, 5.0 asked for", labels)
        self.assertEqual([name for name in os.listdir(self.scratch.name) if "write" in name], [])

    def test_engine_options(self):
        cpu = str(min(os.sched_getaffinity(0)))
        engine = self.run_file("engine.json", "--pages", "1:10", "--batches", "20", "--queue-depth", "4", "--sqpoll", cpu, "--plain-buffers",
                               "--plain-files", "--cpus", cpu)["results"][0]["engine"]
        self.assertEqual((engine["sqpoll"], engine["iopoll"], engine["fixed_buffers"], engine["fixed_files"]), (True, False, False, False))
        self.assertIn("submissions polled on CPU " + cpu, engine["effective"])
        self.assertGreater(engine["poller_cpu_pct"], 0)
        disk = ["run", "--disk", self.image, "--pages", "1:5"]
        self.refused(2, ["--sqpoll", "uring", "pread"], *disk, "--source", "pread", "--sqpoll", "0")
        self.refused(3, ["CPU 4000"], *disk, "--sqpoll", "4000")
        self.refused(2, ["--iopoll", "--page-cached"], *disk, "--iopoll", "--page-cached")
        self.refused(3, ["NUMA node 900"], *disk, "--numa-node", "900")
        polled = subprocess.run([PROGRAM, *disk, "--batches", "5", "-q", "--iopoll"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                stdin=subprocess.DEVNULL, timeout=120)
        self.assertIn(polled.returncode, (0, 3))  # as the disk here can or cannot
        self.assertIn("poll", polled.stdout + polled.stderr)

    def test_buffers_that_may_not_be_locked(self):
        limited = ["prlimit", "--memlock=65536:65536"]
        if os.geteuid() == 0:  # whom the limit does not bind
            limited += ["setpriv", "--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock"]
        if not shutil.which("prlimit") or not shutil.which("setpriv"):
            self.skipTest("no prlimit or setpriv here")
        if subprocess.run([*limited, "true"], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode != 0:
            self.skipTest("capabilities cannot be dropped here")
        ran = subprocess.run([*limited, PROGRAM, "run", "--disk", self.image, "--pages", "1:40", "--batches", "20", "-q"], text=True,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        self.assertIn("buffers not registered (RLIMIT_MEMLOCK is below", ran.stdout.replace("\n", " "))
        self.assertIn("RLIMIT_MEMLOCK is at most 64.0 KiB", " ".join(ran.stdout.split()))

    def test_failed_reads_keep_what_was_read(self):
        for nth in ("145", "400"):  # within the first round that counts; later
            self.refused(4, ["layer 1: page", self.image], "run", "--disk", self.image, "--pages", "1:10", "--batches", "100", "-q",
                         "--wrap", f"faulty:class=eio,nth={nth}", "--out", self.path("failed.json"))
            with open(self.path("failed.json"), encoding="utf-8") as file:
                kept = json.load(file)
            self.assertIn("read_failed", [warning["code"] for warning in kept["warnings"]])
            self.assertGreater(kept["results"][0]["points"][0]["t_us"]["1"]["n"], 0)
            self.assertGreater(kept["results"][0]["points"][0]["pages_per_s"], 0)

    def test_a_layer_without_pages_takes_no_time(self):
        result = self.run_file("none.json", "--pages", "1:0,14:8", "--batches", "20", "--windows", "1:5000,14:5000")
        self.assertEqual(result["results"][0]["points"][0]["t_us"]["1"]["max"], 0)
        self.assertEqual([v["k"] for v in result["results"][0]["verdicts"]], [14])
        self.assertIn("run order, first round to last: T14 ", " ".join(result["settings"]["labels"]))

    def test_prefill_loads_are_beside_the_fit(self):
        ran = self.call("sweep", "--quick", self.image, "-q", "--pages", "1:20,14:20", "--prefill-pages", "200", "--out", self.path("prefill.json"))
        with open(self.path("prefill.json"), encoding="utf-8") as file:
            result = json.load(file)["results"][0]
        self.assertEqual(len(result["points"]), 10)
        self.assertLessEqual(result["points"][9]["t_us"]["14"]["n"], result["points"][0]["t_us"]["14"]["n"] // 5)
        self.assertEqual(result["fit"][1]["range"]["14"], {"min_pages": 2, "max_pages": 20})
        self.assertIn("beyond the fit, T14", " ".join(ran.stdout.split()))

    def test_io_uring_that_is_refused(self):
        ran = subprocess.run([PROGRAM, "run", "--disk", self.image, "--pages", "1:5"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, timeout=120, preexec_fn=seccomp.refuse_io_uring)
        self.assertEqual(ran.returncode, 3, ran.stdout + ran.stderr)
        for part in ["io_uring", "seccomp", "source 'pread'"]:
            self.assertIn(part, ran.stderr)
        ran = subprocess.run([PROGRAM, "run", "--disk", self.image, "--pages", "1:5", "--source", "pread", "--batches", "10", "-q"],
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120,
                             preexec_fn=seccomp.refuse_io_uring)
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        self.assertIn("pread: ", ran.stdout)

    def test_time_series(self):
        result = self.run_file("long.json", "--pages", "1:5", "--duration", "2s", "--interval", "0.5s")["results"][0]
        intervals = result["points"][0]["intervals"]
        self.assertGreaterEqual(len(intervals), 3)
        self.assertEqual(sum(i["t_us"]["1"]["n"] for i in intervals), result["points"][0]["t_us"]["1"]["n"])

    def test_offsets_are_golden(self):
        def offsets(*extra):
            ran = self.call("run", "--disk", self.image, "--pages", "1:3,14:2", "--show-offsets", "2", *extra)
            return [row["offset"] for row in csv.DictReader(io.StringIO(ran.stdout))]

        self.assertEqual(len(offsets()), 10)
        self.assertEqual(offsets(), offsets())
        self.assertNotEqual(offsets(), offsets("--seed", "2"))
        self.assertEqual(offsets(), GOLDEN)

    def test_sweep_fits_a_line_and_compare_finds_a_change(self):
        self.call("sweep", "--quick", self.image, "-q", "--pages", "1:60,14:60", "--windows", "1:5000,14:5000", "--wrap",
                  "delayed:latency_us=3000,gb_per_s=0.05", "--out", self.path("slow.json"), "--plot", self.path("slow.svg"))
        with open(self.path("slow.json"), encoding="utf-8") as file:
            result = json.load(file)["results"][0]
        self.assertEqual(len(result["points"]), 9)
        # A page takes 81.92 us on that link, behind 3 ms: the disk's own time is hidden or adds.
        fit = {f["k"]: f for f in result["fit"]}
        self.assertGreater(fit[1]["b_us"]["1"], 40)
        self.assertGreater(fit[14]["b_us"]["14"], 40)
        self.assertIn("r2", fit[1])
        with open(self.path("slow.svg"), encoding="utf-8") as file:
            drawn = file.read()
        for part in ["<svg", "layer 1 measured", "layer 14 fitted", "layer 14 window"]:
            self.assertIn(part, drawn)
        self.call("sweep", "--quick", self.image, "-q", "--pages", "1:60,14:60", "--out", self.path("fast.json"))
        ran = self.call("compare", self.path("slow.json"), self.path("fast.json"))
        self.assertIn("faster", ran.stdout)
        self.assertIn("slower", self.call("compare", self.path("fast.json"), self.path("slow.json"), code=1).stdout)
        ran = self.call("compare", "--tolerance", "90", self.path("fast.json"), self.path("fast.json"))
        self.assertIn("same", ran.stdout)
        self.refused(2, ["no load in common"], "compare", self.path("fast.json"), self.make_run())

    def make_run(self):
        self.run_file("other.json", "--pages", "1:7", "--batches", "20")
        return self.path("other.json")

    def test_unstamped_reads_say_so(self):
        with open(self.path("raw"), "wb") as file:
            file.write(os.urandom(1 << 20) + bytes(1 << 20))
        ran = self.call("run", "--disk", self.path("raw"), "--unstamped", "--pages", "1:40", "--batches", "20", "-q", "--out",
                        self.path("raw.json"))
        self.assertIn("without stamps", ran.stdout)
        with open(self.path("raw.json"), encoding="utf-8") as file:
            result = json.load(file)["results"][0]
        self.assertEqual(result["verify"], "unstamped")
        self.assertAlmostEqual(result["zero_pages_share"], 0.5, delta=0.1)

    def test_preflight_and_fio(self):
        ran = self.call("preflight", self.image)
        self.assertIn("direct I/O", ran.stdout)
        job = self.call("run", "--disk", self.image, "--pages", "1:30,14:20", "--print-fio").stdout
        self.assertIn("iodepth_batch_complete_min=50", job)
        self.assertIn("fio --readonly", job)
        self.refused(2, ["no-such-folder"], "preflight", "/no-such-folder/x/y")

    def test_formats_and_dry_run(self):
        for form in ["md", "csv", "json"]:
            ran = self.call("run", "--disk", self.image, "--pages", "1:5", "--batches", "10", "-q", "--format", form)
            self.assertIn("uring", ran.stdout)
            if form == "json":
                json.loads(ran.stdout)
        self.assertIn("reads 1:5", self.call("run", "--disk", self.image, "--pages", "1:5", "--dry-run").stdout)

    def test_bad_input(self):
        disk = ["run", "--disk", self.image]
        self.refused(2, ["--pages", "1:700,14:700"], *disk, "--pages", "700")
        self.refused(2, ["--windows", "layer 14"], *disk, "--pages", "14:5", "--windows", "1:2")
        self.refused(2, ["2", "layer"], *disk, "--pages", "2:5")
        self.refused(2, ["unknown source", "uring"], *disk, "--source", "floppy")
        self.refused(2, ["delayed", "latency"], *disk, "--wrap", "delayed:latency=5")
        self.refused(2, ["--unstamped", "--pages"], "run", "--disk", self.image, "--unstamped")
        self.refused(2, ["--duration", "24h"], *disk, "--duration", "long")
        self.refused(2, ["--cpus"], *disk, "--cpus", "3-1")
        self.refused(2, ["--order"], *disk, "--order", "backwards")
        self.refused(2, ["pages", "different"], *disk, "--pages", "1:100000")
        self.refused(2, ["1:0,14:0", "nothing to measure"], *disk, "--pages", "1:0,14:0")
        with open(self.path("text"), "w", encoding="utf-8") as file:
            file.write("no image" * 100000)
        self.refused(2, [self.path("text")], "run", "--disk", self.path("text"), "--pages", "1:5")
        self.refused(2, ["absent"], "run", "--disk", self.path("absent"), "--pages", "1:5")

    def test_interrupt_keeps_what_was_read(self):
        process = subprocess.Popen([PROGRAM, "run", "--disk", self.image, "--pages", "1:5", "--duration", "60s", "-q", "--out",
                                    self.path("cut.json")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        # When it has read more than twenty batches, which at most warm up.
        deadline = time.monotonic() + 50
        while time.monotonic() < deadline and process.poll() is None:
            with open(f"/proc/{process.pid}/io", encoding="utf-8") as file:
                if int(file.read().split("read_bytes: ")[1].split()[0]) > 2 << 20:
                    break
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        with open(self.path("cut.json"), encoding="utf-8") as file:
            cut = json.load(file)
        self.assertIn("interrupted", [w["code"] for w in cut["warnings"]])
        self.assertGreater(cut["results"][0]["points"][0]["t_us"]["1"]["n"], 0)


# Image of 64 MiB, seed 1: layer 1 begins at 1 MiB, layer 14 behind its share.
GOLDEN = [str(offset) for offset in (4153344, 20541440, 1478656, 48201728, 45187072, 4263936, 24084480, 25505792, 48807936, 45371392)]

if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""slacktier-tier as a user meets it: stage, verify, inspect, discard, and what each refuses."""

import json
import os
import resource
import signal
import subprocess
import tempfile
import time
import unittest

PROGRAM = os.path.join(os.environ["SLACKTIER_BIN"], "slacktier-tier")
TABLE = {
    "name": "tiny", "hash": "engram", "record": "fp8_e4m3_block32", "engram_layer_ids": [1, 14], "engram_max_ngram_size": 4,
    "engram_n_heads": 8, "engram_head_dim": 256, "engram_vocab_size": 500, "engram_pad_token_id": 2, "vocab_size": 1000,
    "compressed_vocab_size": 900, "seed": 0,
}


def small_files():
    resource.setrlimit(resource.RLIMIT_FSIZE, (8 << 20, 8 << 20))


class Tier(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name
        self.table = self.write_table("tiny.json")

    def write_table(self, name, **changes):
        with open(self.path(name), "w", encoding="utf-8") as file:
            json.dump({**TABLE, **changes}, file)
        return self.path(name)

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_tier(self, *arguments, code=0, **options):
        ran = subprocess.run([PROGRAM, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             timeout=300, **options)
        self.assertEqual(ran.returncode, code, f"{arguments}: {ran.stdout}{ran.stderr}")
        return ran

    def refused(self, code, parts, *arguments, **options):
        ran = self.run_tier(*arguments, code=code, **options)
        self.assertEqual(ran.stderr.count("\n"), 1, ran.stderr)
        self.assertTrue(ran.stderr.startswith("slacktier-tier: error: "), ran.stderr)
        for part in parts:
            self.assertIn(part, ran.stderr)
        self.assertEqual(ran.stdout, "")

    def test_help(self):
        for command in [[], ["stage"], ["verify"], ["inspect"], ["discard"]]:
            ran = self.run_tier(*command, "--help")
            self.assertIn("slacktier-tier", ran.stdout)
            self.assertEqual(ran.stderr, "")
            for line in ran.stdout.split("\n"):
                self.assertLessEqual(len(line), 140, line)

    def test_life_of_an_image(self):
        disks = ["--disk", self.path("a.img"), "--disk", self.path("b.img")]
        settings = ["--table", self.table, "--ranks", "4", "--rank", "3,0", "--layers", "14", "--seed", "9"]
        plan = json.loads(self.run_tier("stage", *settings, *disks, "--dry-run", "--format", "json").stdout)
        self.assertTrue(plan["dry_run"])
        self.assertFalse(os.path.exists(self.path("a.img")))
        self.assertIn("nothing was written", self.run_tier("stage", *settings, *disks, "--dry-run").stdout)

        ran = self.run_tier("stage", *settings, *disks, "-q", "--format", "json")
        self.assertEqual(ran.stderr, "")
        staged = json.loads(ran.stdout)
        self.assertEqual(staged["written_bytes"], staged["bytes"])
        self.assertEqual([(s["layer"], s["rank"]) for s in staged["segments"]], [(14, 0), (14, 3)])
        self.assertEqual(staged["disk_bytes"], os.path.getsize(self.path("a.img")))
        for key in ["bytes", "disk_bytes", "fingerprint", "segments", "page_bytes", "origin"]:
            self.assertEqual(staged[key], plan[key])
        self.assertIn("all of it was staged before", self.run_tier("stage", *settings, *disks).stdout)

        inspected = json.loads(self.run_tier("inspect", *disks, "--format", "json").stdout)
        self.assertTrue(inspected["complete"])
        self.assertEqual(inspected["origin"], "generated seed=9")
        self.assertIn("generated seed=9", self.run_tier("inspect", *disks).stdout)

        verified = json.loads(self.run_tier("verify", "--table", self.table, *disks, "--format", "json").stdout)
        pages = sum(s["stored_pages"] for s in staged["segments"])
        self.assertEqual((verified["pages"], verified["bad"]), (pages, 0))
        self.assertIn("0 of 10 pages are bad", self.run_tier("verify", "--table", self.table, *disks, "--sample", "10").stdout)
        self.refused(2, ["tiny", "--table"], "verify", *disks)
        self.refused(2, ["holds table tiny", "not engram_v41"], "verify", *disks, "--table", "engram_v41")

        with open(self.path("a.img"), "r+b") as file:
            file.seek(staged["segments"][1]["base_bytes"] + 50)
            byte = file.read(1)
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte[0] ^ 255]))
        bad = self.run_tier("verify", "--table", self.table, *disks, code=1).stdout
        self.assertIn("layer 14 rank 3 page 0: torn", bad)
        self.assertIn("1 of ", bad)

        self.refused(2, ["seed=9", "seed=10", "discard it first"], "stage", *settings[:-1], "10", *disks)
        self.run_tier("stage", *settings[:-1], "10", *disks, "--replace", "-q")
        self.run_tier("verify", "--table", self.table, *disks, "-q")
        self.run_tier("discard", *disks)
        self.assertEqual(os.listdir(self.folder), ["tiny.json"])

    def test_built_in_table_at_a_size(self):
        disk = ["--disk", self.path("a.img")]
        self.run_tier("stage", "--ranks", "4", "--rank", "3", "--size", "8MiB", *disk, "-q")
        self.assertLessEqual(os.path.getsize(self.path("a.img")), 8 << 20)
        image = json.loads(self.run_tier("inspect", *disk, "--format", "json").stdout)
        self.assertTrue(image["scaled"])
        self.assertEqual([s["rows"] for s in image["segments"]], [96001542, 96004169])
        self.run_tier("verify", *disk, "-q")

    def test_interrupted_and_resumed(self):
        disk = self.path("a.img")
        command = [PROGRAM, "stage", "--size", "1GiB", "--disk", disk]
        full = json.loads(self.run_tier(*command[1:], "--dry-run", "--format", "json").stdout)["disk_bytes"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as staging:
            deadline = time.monotonic() + 60
            # Its full size is the sign that the space is claimed and pages are being written.
            while not (os.path.exists(disk) and os.path.getsize(disk) == full) and time.monotonic() < deadline:
                time.sleep(0.001)
            staging.send_signal(signal.SIGINT)
            out, err = staging.communicate(timeout=60)
        self.assertEqual(staging.returncode, 130, out + err)
        self.assertIn("interrupted", err)
        self.assertFalse(json.loads(self.run_tier("inspect", "--disk", disk, "--format", "json").stdout)["complete"])
        self.refused(2, ["interrupted", "to resume"], "verify", "--disk", disk)
        self.run_tier(*command[1:], "-q")
        self.assertIn("0 of 1000 pages are bad", self.run_tier("verify", "--disk", disk, "--sample", "1000", "-q").stdout)

    def test_no_room(self):
        self.refused(3, ["a.img", "ulimit -f", "--size"], "stage", "--size", "16MiB", "--disk", self.path("a.img"), preexec_fn=small_files)
        self.assertFalse(os.path.exists(self.path("a.img")))

    def test_wrong_usage(self):
        disk = ["--disk", self.path("a.img")]
        self.refused(2, ["subcommand", "--help"])
        self.refused(2, ["--disk", "stage --help"], "stage")
        self.refused(2, ["unknown table", "engram_v41, qwen38_ple"], "stage", "--table", "engram", *disk)
        self.refused(2, ["no layer 2", "1, 14"], "stage", "--layers", "1,2", *disk)
        self.refused(2, ["rank 4 of 4"], "stage", "--ranks", "4", "--rank", "4", *disk)
        self.refused(2, ["shard map", "contiguous or striped"], "stage", "--shard-map", "round", *disk)
        for size in ["1 parsec", "GiB", "-1GiB", "0", "nan", "1e300"]:
            self.refused(2, ["--size", "1GiB"], "stage", f"--size={size}", *disk)
        self.refused(2, ["at least"], "stage", "--size", "1MiB", *disk)
        wide = self.write_table("wide.json", engram_head_dim=512)
        self.refused(2, ["528 bytes does not fit", "larger pages"], "stage", "--table", wide, "--page-size", "512", *disk)
        self.refused(2, ["power of two"], "stage", "--page-size", "5000", *disk)
        self.refused(2, ["cannot be opened"], "inspect", *disk)
        self.refused(2, ["cannot be opened"], "discard", *disk)
        self.refused(2, ["is not an image"], "inspect", "--disk", self.table)
        self.refused(2, ["no image"], "discard", "--disk", self.table)
        self.refused(2, ["no image", "not overwritten"], "stage", "--disk", self.table)
        self.refused(2, ["is no image"], "stage", "--replace", "--disk", self.table)
        broken = self.write_table("broken.json", sead=1)
        self.refused(2, ["broken.json", "\"sead\"", "unknown"], "stage", "--table", broken, *disk)
        self.assertFalse(os.path.exists(self.path("a.img")))
        with open(self.table, encoding="utf-8") as file:
            self.assertEqual(json.load(file)["name"], "tiny")


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""slacktier-tier as a user meets it: stage, verify, inspect, discard, and what each refuses."""

import json
import os
import resource
import signal
import struct
import subprocess
import tempfile
import time
import unittest

import numpy as np

PROGRAM = os.path.join(os.environ["SLACKTIER_BIN"], "slacktier-tier")
TABLE = {
    "name": "tiny", "hash": "engram", "record": "fp8_e4m3_block32", "engram_layer_ids": [1, 14], "engram_max_ngram_size": 4,
    "engram_n_heads": 8, "engram_head_dim": 256, "engram_vocab_size": 500, "engram_pad_token_id": 2, "vocab_size": 1000,
    "compressed_vocab_size": 900, "seed": 0,
}


def splitmix64(value):
    mask = (1 << 64) - 1
    value = (value + 0x9E3779B97F4A7C15) & mask
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & mask
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & mask
    return value ^ (value >> 31)


def ple_rows(tokens, table):
    """Rows of a PLE table's only layer as its model computes them, over arrays of whole sequences."""
    order, heads, vocabulary, eos = table["ngram_size"], table["heads_per_ngram"], table["vocab_size"], table["eos_token_id"]
    half = max(1, ((1 << 63) - 1) // vocabulary // 2)
    multipliers = [2 * (splitmix64((table["seed"] + 0x9E3779B97F4A7C15 * (i + 1)) % (1 << 64)) % half) + 1 for i in range(order)]
    primes, candidate = [], table["ngram_vocab_size_base"]
    while len(primes) < (order - 1) * heads:
        if all(candidate % d for d in range(2, int(candidate**0.5) + 1)):
            primes.append(candidate)
        candidate += 1
    history = np.concatenate([np.full(order - 1, eos), tokens])
    at = np.arange(len(history))
    segment_end = np.maximum.accumulate(np.where(history == eos, at, -1))
    in_segment = at - np.concatenate([[-1], segment_end[:-1]]) - 1
    back = [np.where(in_segment >= n, history[np.maximum(at - n, 0)], eos) for n in range(order)]
    columns, offset = [], 0
    for n in range(2, order + 1):
        mix = back[0] * multipliers[0]
        for i in range(1, n):
            mix = mix ^ (back[i] * multipliers[i])
        for prime in primes[(n - 2) * heads:(n - 1) * heads]:
            columns.append(mix % prime + offset)
            offset += prime
    return np.stack(columns, axis=1)[order - 1:]


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
        for command in [[], ["stage"], ["verify"], ["inspect"], ["discard"], ["table"], ["table", "from-config"], ["table", "show"], ["table", "rows"]]:
            ran = self.run_tier(*command, "--help")
            self.assertIn("slacktier-tier", ran.stdout)
            self.assertEqual(ran.stderr, "")
            for line in ran.stdout.split("\n"):
                self.assertLessEqual(len(line), 140, line)

    def test_rows_of_a_token_sequence(self):
        table = {"name": "ple", "hash": "ple", "record": "bf16", "ple_layer_ids": [2], "ngram_size": 3, "heads_per_ngram": 4,
                 "ple_embed_dim": 64, "ngram_vocab_size_base": 10_000, "make_ngram_vocab_size_divisible_by": 128, "vocab_size": 900,
                 "eos_token_id": 5, "seed": 77}
        with open(self.path("ple.json"), "w", encoding="utf-8") as file:
            json.dump(table, file)
        rng = np.random.default_rng(2)
        tokens = np.where(rng.random(5000) < 0.1, 5, rng.integers(0, 900, 5000))
        tokens[0] = tokens[-1] = 5
        np.save(self.path("tokens.npy"), tokens)
        command = ["table", "rows", "--table", self.path("ple.json"), "--tokens", self.path("tokens.npy"), "-o", self.path("rows.npy")]
        self.assertIn("5000 tokens, 8 rows each, layer 1 of ple", self.run_tier(*command).stderr)
        np.testing.assert_array_equal(np.load(self.path("rows.npy")), ple_rows(tokens, table))
        self.refused(2, ["4"], *command, "--layer", "4")
        np.save(self.path("tokens.npy"), np.array([1, 900]))
        self.refused(2, ["tokens.npy", "token 1 is 900", "0 to 899"], *command)
        np.save(self.path("tokens.npy"), np.array([[1], [2]]))
        self.refused(2, ["tokens.npy", "one dimension"], *command)
        np.save(self.path("tokens.npy"), np.array([1, 2]))
        self.refused(2, ["compressed vocabulary", "--token-map"], "table", "rows", "--table", self.table, *command[4:])

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

    def test_a_new_model_from_its_config(self):
        config = self.path("config.json")
        with open(config, "w", encoding="utf-8") as file:
            json.dump({"model_type": "gemma9", "text_config": {"num_hidden_layers": 3, "hidden_size_per_layer_input": 32,
                                                              "vocab_size_per_layer_input": 1000, "vocab_size": 1000}}, file)
        spec = self.path("gemma9.json")
        self.assertEqual(self.run_tier("table", "from-config", config, "-o", spec).stdout, "")
        with open(spec, encoding="utf-8") as file:
            self.assertEqual(json.load(file), json.loads(self.run_tier("table", "from-config", config).stdout))
        self.refused(2, ["gemma9.json", "there already", "--force"], "table", "from-config", config, "-o", spec)
        self.run_tier("table", "from-config", config, "-o", spec, "--force", "--name", "mine")
        plain = self.path("plain.json")
        with open(plain, "w", encoding="utf-8") as file:
            json.dump({"model_type": "llama", "vocab_size": 7}, file)
        self.refused(2, ["cannot be written"], "table", "from-config", config, "-o", self.path("no/such.json"))
        self.refused(2, ["no lookup table that is known", "engram_layer_ids", "no text_config"], "table", "from-config", plain)
        self.refused(2, ["subcommand"], "table")

        shown = self.run_tier("table", "show", spec, "--ranks", "4").stdout
        for part in ["mine", "token_id", "embed_tokens_per_layer", "250"]:
            self.assertIn(part, shown)
        table = json.loads(self.run_tier("table", "show", spec, "--ranks", "4", "--format", "json").stdout)
        self.assertEqual([layer["layer"] for layer in table["layers"]], [0, 1, 2])
        self.assertEqual(table["layers"][2]["ranks"][3], {"rank": 3, "rows": 250, "row_bytes": 16000, "pages": 4, "page_bytes": 16384, "columns": [0]})
        built_in = json.loads(self.run_tier("table", "show", "engram_v41", "--ranks", "4", "--format", "json").stdout)
        self.assertEqual(built_in["layers"][1]["ranks"][3]["columns"], [18, 19, 20, 21, 22, 23])
        self.assertEqual(built_in["layers"][0]["rows"], 384006168)
        # What is shown is what staging would write.
        plan = json.loads(self.run_tier("stage", "--table", spec, "--ranks", "4", "--disk", self.path("x"), "--dry-run", "--format", "json").stdout)
        self.assertEqual([s["pages"] for s in plan["segments"]], [rank["pages"] for layer in table["layers"] for rank in layer["ranks"]])

    def test_rows_of_a_checkpoint(self):
        spec = self.path("g.json")
        with open(spec, "w", encoding="utf-8") as file:
            json.dump({"name": "g", "hash": "token_id", "record": "bf16", "num_hidden_layers": 2, "hidden_size_per_layer_input": 32,
                       "vocab_size_per_layer_input": 500, "vocab_size": 500, "rows": {"weight": "e", "column_split": True}}, file)
        rows = os.urandom(500 * 128)
        header = json.dumps({"e": {"dtype": "BF16", "shape": [500, 64], "data_offsets": [0, len(rows)]}}).encode()
        for name, data in [("m.safetensors", rows), ("other.safetensors", rows[::-1])]:
            with open(self.path(name), "wb") as file:
                file.write(struct.pack("<Q", len(header)) + header + data)
        image = ["--disk", self.path("g.img")]
        from_rows = ["--table", spec, "--rows", self.path("m.safetensors")]
        self.run_tier("stage", *from_rows, *image, "-q")
        self.assertIn("safetensors fingerprint=", self.run_tier("inspect", *image).stdout)
        with open(self.path("g.img"), "rb") as file:
            file.seek(1 << 20)
            self.assertEqual(file.read(64), rows[:64])
        self.assertIn("0 of 9 pages are bad", self.run_tier("verify", *from_rows, *image, "--sample", "9").stdout)
        self.assertIn("0 of 16 pages are bad", self.run_tier("verify", *from_rows, *image, "--all").stdout)
        self.refused(2, ["excludes"], "verify", *from_rows, *image, "--all", "--sample", "9")
        self.refused(2, ["another origin", "--rows"], "verify", "--table", spec, *image)
        self.refused(2, ["another origin"], "verify", "--table", spec, "--rows", self.path("other.safetensors"), *image)
        self.refused(2, ["origin is", "discard it first"], "stage", "--table", spec, "--rows", self.path("other.safetensors"), *image)
        self.refused(2, ["truncated", "m.safetensors"], "stage", "--table", spec, "--rows", self.truncated("m.safetensors"), *image)
        self.refused(2, ["does not say where"], "stage", "--table", self.table, "--rows", self.path("other.safetensors"), *image)

    def truncated(self, name):
        os.truncate(self.path(name), os.path.getsize(self.path(name)) - 1)
        return self.path(name)

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

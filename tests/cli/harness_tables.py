#!/usr/bin/env python3
"""slacktier-harness run on tables of other kinds: per-layer and input embeddings, and rows of a checkpoint."""

import json
import os
import random
import struct
import subprocess
import tempfile
import unittest

PROGRAM = os.path.join(os.environ["SLACKTIER_BIN"], "slacktier-harness")
GEMMA = {
    "name": "g", "hash": "token_id", "record": "bf16", "num_hidden_layers": 4, "hidden_size_per_layer_input": 32,
    "vocab_size_per_layer_input": 580, "vocab_size": 600, "rows": {"weight": "e", "column_split": True},
}
LONGCAT = {
    "name": "l", "hash": "polynomial", "record": "bf16", "ngram_vocab_size_ratio": 30.5, "emb_neighbor_num": 3, "emb_split_num": 2,
    "hidden_size": 256, "vocab_size": 600, "eos_token_id": 2,
}
ON_DISK = {"source": "pread", "threads": 2}


class Tables(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(dir=os.environ["SLACKTIER_BUILD"])  # temporary folders may lack direct I/O
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name
        rng = random.Random(5)
        with open(self.path("work.jsonl"), "w", encoding="utf-8") as file:
            for s in range(30):
                turns = []
                for _ in range(3):
                    turns.append({"role": "user", "ids": [rng.randrange(600) for _ in range(20)]})
                    turns.append({"role": "assistant", "ids": [rng.randrange(600) for _ in range(30)]})
                file.write(json.dumps({"id": f"s{s}", "group": "g", "turns": turns}) + "\n")

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, value):
        with open(self.path(name), "w", encoding="utf-8") as file:
            json.dump(value, file)

    def campaign(self, table, placements, **changes):
        self.write("table.json", table)
        dram = {"source": "dram"}
        self.write("campaign.json", {
            "name": "small", "table": self.path("table.json"), "ranks": 1, "rank": 0, "sessions": 8, "warm_steps": 10, "blocks": 3,
            "block_steps": 5, "lead_steps": 1, "image_bytes": 32 << 20, "workloads": [{"name": "work", "traces": [self.path("work.jsonl")]}],
            "placements": [{"name": "DRAM baseline", "layers": {"all": dram}}] + placements, **changes,
        })

    def run_harness(self, *more, code=0):
        ran = subprocess.run([PROGRAM, "run", self.path("campaign.json"), "--scratch", self.path("scratch"), "--out", self.path("out.json"),
                              "-q", *more], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
        self.assertEqual(ran.returncode, code, f"{ran.stdout}{ran.stderr}")
        if code != 0:
            return ran.stderr
        with open(self.path("out.json"), encoding="utf-8") as file:
            return json.load(file)

    def layers_of(self, results, name):
        configuration, = [c for c in results["results"] if c["name"] == name]
        self.assertEqual(configuration["mismatches"], 0)
        self.assertGreater(configuration["checked_rows"], 0)
        return configuration["layers"]

    def test_one_window_a_column_group(self):
        self.campaign(GEMMA, [
            {"name": "on disk", "layers": {"all": ON_DISK}},
            {"name": "first in DRAM", "layers": {"all": {**ON_DISK, "cache_rows_per_rank": 300}, "0": {"source": "dram"}}},
        ])
        results = self.run_harness("--model-layers", "4", "--step-ms", "4")
        self.assertEqual([round(layer["window_ms"], 3) for layer in self.layers_of(results, "on disk")], [0, 1, 2, 3])
        self.assertIn("assumed, 4 equal layers", results["settings"]["windows_source"])
        cached = self.layers_of(results, "first in DRAM")
        self.assertTrue(results["settings"]["sources"]["first in DRAM"]["0"].startswith("host table, "))
        self.assertGreater(cached[3]["ranks"][0]["hit_rate"], 0)

    def test_a_table_without_a_window(self):
        self.campaign(LONGCAT, [{"name": "on disk", "layers": {"0": ON_DISK}}])
        results = self.run_harness("--model-layers", "4", "--step-ms", "4")
        layer, = self.layers_of(results, "on disk")
        self.assertEqual((layer["k"], layer["window_ms"]), (0, 0))
        # Nothing runs before it: what its reads take shows as a stall, but for what passes until the gate is reached.
        self.assertGreater(layer["ranks"][0]["stall_us"]["mean"], layer["ranks"][0]["t_done_us"]["mean"] / 2)

    def test_rows_of_a_checkpoint(self):
        data = random.Random(7).randbytes(580 * 256)
        header = json.dumps({"e": {"dtype": "BF16", "shape": [580, 128], "data_offsets": [0, len(data)]}}).encode()
        with open(self.path("m.safetensors"), "wb") as file:
            file.write(struct.pack("<Q", len(header)) + header + data)
        self.campaign(GEMMA, [{"name": "on disk", "layers": {"all": {**ON_DISK, "cache_rows_per_rank": 100}}}])
        model = ["--model-layers", "4", "--step-ms", "4"]
        rows = [*model, "--rows", self.path("m.safetensors")]
        results = self.run_harness(*rows)
        self.layers_of(results, "on disk")
        self.assertIn("safetensors fingerprint=", results["settings"]["rows"])
        image, = [self.path(f"scratch/{f}") for f in os.listdir(self.path("scratch")) if f.endswith(".slacktier")]
        # The image is the checkpoint's: it serves no run on generated rows.
        self.assertIn("another origin", self.run_harness(*model, "--disk", image, code=2))
        self.run_harness(*model)  # ... but another one in the same folder does
        self.assertEqual(len([f for f in os.listdir(self.path("scratch")) if f.endswith(".slacktier")]), 2)

        with open(image, "r+b") as file:
            file.seek((1 << 20) + 100)
            byte = file.read(1)
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte[0] ^ 1]))
        error = self.run_harness(*rows, "--disk", image, "--verify-sample", "100000", code=1)
        self.assertIn("check failed", error)
        self.assertIn("layer 0 rank 0 page 0: torn", error)

    def test_wrong_usage(self):
        self.campaign(GEMMA, [{"name": "on disk", "layers": {"all": ON_DISK}}])
        self.assertIn("both must be positive", self.run_harness("--model-layers", "4", code=2))
        self.assertIn("layer 3", self.run_harness("--model-layers", "3", "--step-ms", "4", code=2))
        self.assertIn("cannot be opened", self.run_harness("--rows", self.path("none"), code=2))
        self.campaign(GEMMA, [{"name": "on disk", "layers": {"0": ON_DISK}}])
        self.assertIn("layer 1", self.run_harness(code=2))


if __name__ == "__main__":
    unittest.main()

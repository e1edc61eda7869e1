#!/usr/bin/env python3
"""slacktier-harness run --device sim as a user meets it: no disk, no device, the same bytes again."""

import json
import os
import random
import subprocess
import tempfile
import unittest

PROGRAM = os.path.join(os.environ["SLACKTIER_BIN"], "slacktier-harness")
EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "unit", "reports", "examples")
TABLE = {
    "name": "tiny", "hash": "engram", "record": "fp8_e4m3_block32", "engram_layer_ids": [1, 14], "engram_max_ngram_size": 3,
    "engram_n_heads": 4, "engram_head_dim": 256, "engram_vocab_size": 20000, "engram_pad_token_id": 0, "vocab_size": 600,
    "compressed_vocab_size": 600, "seed": 0,
}

DISK = {"source": "uring", "threads": 2}


class Simulated(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name
        rng = random.Random(5)
        with open(self.path("work.jsonl"), "w", encoding="utf-8") as file:
            for s in range(60):
                turns = []
                for _ in range(3):
                    turns.append({"role": "user", "ids": [rng.randrange(3, 600) for _ in range(20)]})
                    turns.append({"role": "assistant", "ids": [rng.randrange(3, 60) for _ in range(30)]})
                file.write(json.dumps({"id": f"s{s}", "group": "g", "turns": turns}) + "\n")
        self.write("table.json", TABLE)
        dram, disk = {"source": "dram"}, dict(DISK, cache_rows_per_rank=300)
        self.write("campaign.json", {
            "name": "small", "table": self.path("table.json"), "ranks": 2, "rank": 1, "sessions": 8, "warm_steps": 20, "blocks": 3,
            "block_steps": 6, "lead_steps": 1, "workloads": [{"name": "work", "traces": [self.path("work.jsonl")]}],
            "placements": [{"name": "DRAM baseline", "layers": {"all": dram}}, {"name": "on disk", "layers": {"all": disk}}],
        })

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, value):
        with open(self.path(name), "w", encoding="utf-8") as file:
            json.dump(value, file)

    def run_harness(self, *arguments, code=0):
        ran = subprocess.run([PROGRAM, "run", *arguments, "-q"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, timeout=600, cwd=self.folder)
        self.assertEqual(ran.returncode, code, f"{ran.stdout}{ran.stderr}")
        return ran.stdout if code == 0 else ran.stderr

    def simulate(self, *more, out="out.json"):
        self.run_harness(self.path("campaign.json"), "--device", "sim", "--out", self.path(out), *more)
        with open(self.path(out), encoding="utf-8") as file:
            return json.load(file)

    def test_the_same_bytes_again(self):
        first, second = self.simulate(), self.simulate(out="again.json")
        self.assertEqual(json.dumps(first["results"]).replace("out-samples", ""), json.dumps(second["results"]).replace("again-samples", ""))
        self.assertIn("times are modelled", json.dumps(first["warnings"]))
        layers = [c for c in first["results"] if c["name"] == "on disk"][0]["layers"]
        self.assertEqual([r["rank"] for r in layers[0]["ranks"]], [0, 1])
        self.assertGreater(layers[0]["ranks"][1]["miss_pages_per_step"]["mean"], 0)
        self.assertFalse(os.path.exists(self.path("slacktier-scratch/images")))

    def test_read_times_of_a_file(self):
        results = self.simulate("--reads", os.path.join(EXAMPLES, "reads.json"), "--gates", os.path.join(EXAMPLES, "gates.json"), "--rank", "1")
        self.assertEqual(results["settings"]["measured_ranks"], [1])
        self.assertIn("reads.json", results["settings"]["service"])
        self.assertIn("gates.json", results["settings"]["costs"])
        slow, = [c for c in results["results"] if c["name"] == "on disk"]
        # The file's disk takes 0.3 ms for any batch, which layer 1's window does not hide.
        self.assertGreater(slow["layers"][0]["ranks"][0]["t_done_us"]["min"], 300)
        self.assertGreater(slow["slowdown"]["mean_ms"], 0)

    def test_bad_input(self):
        with open(os.path.join(EXAMPLES, "reads.json"), encoding="utf-8") as file:
            reads = json.load(file)
        reads["results"][0]["fit"] = []
        self.write("reads.json", reads)
        campaign = self.path("campaign.json")
        self.assertIn("no fit", self.run_harness(campaign, "--device", "sim", "--reads", self.path("reads.json"), code=2))
        self.assertIn("--device sim", self.run_harness(campaign, "--device", "cpu", "--reads", self.path("reads.json"), code=2))
        self.assertIn("--control", self.run_harness(campaign, "--device", "sim", "--control", self.path("c.json"), code=2))
        self.assertIn("--prefill", self.run_harness(campaign, "--device", "sim", "--prefill", "read", code=2))
        self.assertIn("--device sim", self.run_harness("paper", code=2))
        self.assertIn("agent and chat", self.run_harness("paper", "--device", "sim", "--trace", self.path("work.jsonl"), code=2))

    def test_a_split_controller(self):
        with open(self.path("campaign.json"), encoding="utf-8") as file:
            campaign = json.load(file)
        campaign.update(blocks=8, block_steps=20, warm_steps=300)
        slow = dict(DISK, wrappers=["delayed:latency_us=20,gb_per_s=0.05"])
        campaign["placements"][1]["layers"] = {"1": dict(slow, cache_rows_per_rank=0), "14": dict(slow, cache_rows_per_rank=20000)}
        self.write("campaign.json", campaign)
        fixed, split = self.simulate(), self.simulate("--controller", out="split.json")
        controller = split["settings"]["controller"]["work"]
        self.assertEqual(controller["observations"][0]["share"], 0)
        self.assertGreater(controller["share"], 0, controller)
        # Layer 1's pages are never hidden, layer 14's are: each row that moves to layer 1 saves time.
        waits = [[c for c in r["results"] if c["name"] == "on disk"][0]["slowdown"]["mean_ms"] for r in (fixed, split)]
        self.assertLess(waits[1], waits[0])
        again = self.simulate("--controller", out="again.json")
        self.assertEqual(again["settings"]["controller"], split["settings"]["controller"])
        self.assertIn("--controller", self.run_harness("paper", "--device", "sim", "--controller", code=2))

    def test_dry_run(self):
        said = self.run_harness(self.path("campaign.json"), "--device", "sim", "--dry-run")
        self.assertIn("nothing is staged or read", said)
        self.assertNotIn("stages up to", said)
        self.assertIn("nothing is staged", self.run_harness("paper", "--device", "sim", "--dry-run"))
        self.assertFalse(os.path.exists(self.path("slacktier-scratch")))

    def test_the_papers_evaluation(self):
        self.run_harness("paper", "--device", "sim", "--workloads", "agent", "--warm-steps", "20", "--blocks", "2", "--block-steps", "5", "--report",
                         self.path("report"), "--out", self.path("paper.json"))
        with open(self.path("paper.json"), encoding="utf-8") as file:
            paper = json.load(file)
        cells, warnings = paper["settings"]["cells"], paper["warnings"]
        self.assertEqual({c["origin"] for c in cells}, {"calibrated", "predicted"})
        for table in ("Table 2", "Table 3", "Table 4", "Table 7 (Qwen)", "Table 9 and Figure 3", "Figure 5", "page cache", "remote (RDMA)"):
            self.assertTrue([c for c in cells if c["table"] == table], table)
        self.assertIn("controller_left_out", json.dumps(warnings))  # 10 steps tell it nothing
        # Baselines entered the model; nothing else of Table 2's slowdowns but the four disks of agents did.
        table2 = [c for c in cells if c["table"] == "Table 2" and c["quantity"] == "slowdown_pct"]
        self.assertEqual([c["row"] for c in table2 if c["origin"] == "calibrated"], ["both on 4 disks"])
        with open(self.path("report/tables.md"), encoding="utf-8") as file:
            self.assertIn("Error of the predicted cells", file.read())
        self.assertTrue(os.path.exists(self.path("report/figure3.svg")))


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""slacktier-harness plan: the decision from files, the placement it writes, what it assumes, and each bad input."""

import copy
import json
import os
import subprocess
import tempfile
import unittest

PROGRAM = os.path.join(os.environ["SLACKTIER_BIN"], "slacktier-harness")
EXAMPLES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "unit", "reports", "examples")
ROWS = [0, 250000, 500000, 1000000, 2000000]


def example(kind):
    with open(os.path.join(EXAMPLES, kind + ".json"), encoding="utf-8") as file:
        return json.load(file)


def distribution(mean, p99):
    return {"n": 1000, "mean": mean, "p50": mean, "p99": p99, "min": 0.8 * mean, "max": 1.5 * mean}


class Plan(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name
        self.windows, self.reads, self.misses = example("windows"), example("reads"), example("misses")
        reads = self.reads["results"][0]
        reads["ranks_on_disk"] = 4
        line = reads["fit"][0]
        second = copy.deepcopy(line)
        second["k"] = 14
        for field in ("b_us", "b_lo_us", "b_hi_us"):
            second[field] = {"1": 2.7, "14": 2.7}
        line["range"] = second["range"] = {"1": {"min_pages": 1, "max_pages": 900}, "14": {"min_pages": 1, "max_pages": 900}}
        reads["fit"] = [line, second]
        self.misses["results"][0]["sessions"] = 128
        self.misses["results"][0].pop("sampled", None)
        self.set_pages([(3, [700, 330, 250, 190, 160]), (0, [300, 60, 40, 30, 25])])

    def set_pages(self, ranks, result=0):
        layers = []
        for k in (1, 14):
            layers.append({"k": k, "ranks": [{"rank": r, "curve": [
                {"rows": rows, "decode_hit": None, "pages_mean": pages, "pages_p99": pages * 1.1, "p_any_miss": 1}
                for rows, pages in zip(ROWS, curve)]} for r, curve in sorted(ranks)]})
        self.misses["results"][result]["layers"] = layers

    def write(self, name, value):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(value, file)
        return path

    def plan(self, *more, code=0, without=()):
        arguments = []
        for kind in ("windows", "reads", "misses"):
            if kind not in without:
                arguments += ["--" + kind, self.write(kind + ".json", getattr(self, kind))]
        ran = subprocess.run([PROGRAM, "plan", *arguments, *more], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, timeout=120)
        self.assertEqual(ran.returncode, code, ran.stdout + ran.stderr)
        return ran.stdout if code in (0, 1) else ran.stderr

    def placement(self, *more):
        path = os.path.join(self.folder, "placement.json")
        said = self.plan("-o", path, "--resolve-ms", "0.1", *more)
        with open(path, encoding="utf-8") as file:
            return json.load(file), said

    def test_layer_14_moves_and_layer_1_stays(self):
        placement, said = self.placement("--cache-rows", "0")
        self.assertEqual({k: layer["source"] for k, layer in placement["results"]["layers"].items()}, {"1": "dram", "14": "uring"})
        self.assertTrue(said.startswith("MOVE: L1 dram; L14 uring"), said)
        self.assertIn("of host memory", said.splitlines()[0])
        self.assertIn("No released engine", said.splitlines()[1])
        predicted = placement["results"]["predicted"]
        self.assertLessEqual(predicted["lo_ms"], predicted["mean_ms"])
        self.assertGreaterEqual(predicted["hi_ms"], predicted["mean_ms"])
        self.assertEqual(placement["settings"]["sessions"], 128)

    def test_bounds_decide(self):
        _, wide = self.placement("--mean-bound", "20", "--p99-bound", "25")
        self.assertTrue(wide.startswith("MOVE: L1 uring"), wide)
        for layer in self.windows["results"][0]["layers"]:
            if layer["k"] > 0:
                layer.update(w_ms=0.05, lo_ms=0.04, hi_ms=0.06)
        _, tight = self.placement("--mean-bound", "0.1", "--p99-bound", "0.1")
        self.assertTrue(tight.startswith("KEEP: "), tight)
        self.assertIn("nearest:", tight)
        self.assertIn("what would help:", tight)
        self.plan("--mean-bound", "0.1", "--p99-bound", "0.1", "--check", code=1)

    def test_few_batches_make_no_certainty(self):
        for point in self.reads["results"][0]["points"]:
            for t in point["t_us"].values():
                t.update(p99=None, n=50, reason="p99 needs 662 samples")
        _, said = self.placement()
        self.assertTrue(said.startswith("UNSURE: "), said)
        self.assertIn("p99 unknown", said)
        self.assertIn("too few batches", said)

    def test_striped_shards_are_a_candidate(self):
        striped = copy.deepcopy(self.misses)
        self.set_pages([(r, [600, 130, 110, 90, 70]) for r in range(4)])
        contiguous, self.misses = self.misses, striped
        contiguous["settings"]["shard_map"] = "striped"
        other = self.write("striped.json", contiguous)
        placement, said = self.placement("--misses", other, "--mean-bound", "2", "--p99-bound", "4")
        self.assertEqual(placement["settings"]["shard_map"], "striped", said)

    def test_assumptions_are_said(self):
        said = self.plan("--assume-paper", "windows,reads", "--resolve-ms", "0.1", without=("windows", "reads"))
        self.assertIn("windows: the paper's", said)
        self.assertIn("not this machine", said)
        self.windows["results"][0]["batch"] = 64
        self.windows["provenance"]["host"]["hostname"] = "gpu-1"
        self.reads["results"][0].update(ranks_on_disk=1, steady=False, unmet="means of the last rounds differ by 20%")
        said = self.plan("--sessions", "256")
        for words in ("of batch 64, the plan is for 256", "scaled by 2.00", "1 rank(s) on a disk, the table has 4", "windows from gpu-1",
                      "2 of 4 ranks were measured", "resolve time s", "0.2 ms assumed", "no steady state", "beyond the pages that were measured"):
            self.assertIn(words, said)

    def test_what_if_and_prefill(self):
        prefill = copy.deepcopy(self.misses["results"][0])
        prefill.update(phase="prefill", chunk_tokens=8192)
        self.misses["results"].append(prefill)
        self.set_pages([(3, [30000, 20000, 15000, 12000, 11000]), (0, [9000, 8000, 7000, 6000, 5000])], 1)
        said = json.loads(self.plan("--prefill-ms", "40", "--format", "json"))
        moved = next(row for row in said["rows"] if "uring" in row["plan"])
        self.assertGreater(moved["prefill_pages"], 1000)
        self.assertGreater(moved["prefill_exposed_ms"], 0)
        unknown = json.loads(self.plan("--format", "json"))
        self.assertIn("unknown", {row["prefill_exposed_ms"] for row in unknown["rows"]})
        said = self.plan("--what-if")
        for case in ("tables 2x", "tables of 1 TB", "a single stream", "B = 256", "4 tenants", "q = 4"):
            self.assertIn(case, said)
        self.assertIn("q = 2 (drafts verified), not measured", said)

    def test_prefill_reads_that_were_measured(self):
        prefill = copy.deepcopy(self.misses["results"][0])
        prefill.update(phase="prefill", chunk_tokens=8192)
        self.misses["results"].append(prefill)
        self.set_pages([(3, [30000, 20000, 15000, 12000, 11000]), (0, [9000, 8000, 7000, 6000, 5000])], 1)
        beyond = "beyond the pages that were measured"
        self.assertIn(beyond, self.plan())
        # As the fit of decode's pages says: it holds for a prefill's.
        point = copy.deepcopy(self.reads["results"][0]["points"][0])
        point.update(pages_per_rank={"1": 40000, "14": 40000}, t_us={"1": distribution(140e3, 150e3), "14": distribution(215e3, 230e3)})
        self.reads["results"][0]["points"].append(point)
        self.assertNotIn(beyond, self.plan())
        for k, mean in (("1", 200e3), ("14", 300e3)):
            point["t_us"][k] = distribution(mean, 1.1 * mean)
        self.assertIn(beyond, self.plan())

    def test_what_if_takes_measured_tokens_a_step(self):
        # Two tokens a step that read no more than one: drafts of the same rows.
        drafts = copy.deepcopy(self.misses["results"][0])
        drafts["q"] = 2
        self.misses["results"].append(drafts)
        said = self.plan("--what-if", "--tokens-per-session", "1")
        self.assertNotIn("q = 2 (drafts verified), not measured", said)
        self.assertIn("q = 2 (drafts verified)", said)
        self.assertIn("q = 4 (drafts verified), not measured", said)

    def test_prices_and_other_places(self):
        _, said = self.placement("--price", "dram=4,uring=0.1", "--hbm-gib", "120", "--peer-gib", "300")
        self.assertIn("cost", said)
        _, said = self.placement("--baseline", "hbm")
        self.assertIn("of device memory", said.splitlines()[0])

    def test_bad_input(self):
        def changed(**fields):
            for key, value in fields.items():
                setattr(self, key, value)

        def case(said, change, *more, without=()):
            kept = copy.deepcopy((self.windows, self.reads, self.misses))
            change()
            with self.subTest(said):
                self.assertIn(said, self.plan(*more, code=2, without=without))
            changed(windows=kept[0], reads=kept[1], misses=kept[2])

        def layer(k):
            return next(one for one in self.windows["results"][0]["layers"] if one["k"] == k)

        case("no window of layer 14", lambda: self.windows["results"][0]["layers"].remove(layer(14)))
        case("the window of layer 1 is 'failed'", lambda: layer(1).update(w_ms=None, lo_ms=None, hi_ms=None, status="failed", reason="x"))
        case("is unstamped", lambda: self.reads["results"][0].update(verify="unstamped"))
        case("missing for layer(s) 14", lambda: self.reads["results"][0]["fit"].pop())
        case('settings.table: is "qwen38_ple"', lambda: self.reads["settings"].update(table="qwen38_ple"))
        case("no misses of layer 14", lambda: self.misses["results"][0]["layers"].pop())
        case("none is of phase decode", lambda: self.misses["results"][0].update(phase="all"))
        case("q is 1, 4 tokens", lambda: None, "--tokens-per-session", "4")
        case("none of workload code", lambda: None, "--workload", "code")
        case("none of policy arc", lambda: None, "--policy", "arc")

        def other_ranks():
            self.reads["results"].append(copy.deepcopy(self.reads["results"][0]))
            self.reads["results"][1]["ranks_on_disk"] = 2

        case("2 and 4 ranks on a disk", other_ranks)
        case("not JSON", lambda: self.windows["results"][0].update(step_ms=float("nan")))
        case("major version 9", lambda: self.reads.update(schema="slacktier/reads/9.0"))
        case("no windows: name a file", lambda: None, without=("windows",))
        case("no read times", lambda: None, without=("reads",))
        case("no misses: name a file", lambda: None, without=("misses",))
        case("--assume-paper speed", lambda: None, "--assume-paper", "speed")
        case("--price dram", lambda: None, "--price", "dram")
        case("dram or hbm", lambda: None, "--baseline", "tape")
        kept = self.windows
        path = os.path.join(self.folder, "nan.json")
        with open(path, "w", encoding="utf-8") as file:
            file.write(json.dumps(kept).replace("9.35", "NaN", 1))
        self.assertIn("nan.json", self.plan("--windows", path, code=2, without=("windows",)))


if __name__ == "__main__":
    unittest.main()

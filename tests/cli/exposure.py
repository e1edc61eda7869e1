#!/usr/bin/env python3
"""slacktier-harness exposure: Eq. 1 from values and files, fitted to runs and checked against others, and each bad input."""

import copy
import json
import os
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree as xml

PROGRAM = os.path.join(os.environ["SLACKTIER_BIN"], "slacktier-harness")
EXAMPLES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "unit", "reports", "examples")


class Exposure(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def exposure(self, *arguments, code=0):
        ran = subprocess.run([PROGRAM, "exposure", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True, timeout=120)
        self.assertEqual(ran.returncode, code, ran.stdout + ran.stderr)
        return ran.stdout if code in (0, 1) else ran.stderr

    def results(self, name, costs):
        """A results file with runs whose layer 1 arrives late by known times."""
        with open(os.path.join(EXAMPLES, "results.json"), encoding="utf-8") as file:
            envelope = json.load(file)
        made = next(one for one in envelope["results"] if one["slowdown"] is not None)
        envelope["results"] = []
        for i, (arrival_ms, slowdown_ms) in enumerate(costs):
            one = copy.deepcopy(made)
            one["name"] = f"run {i}"
            one["slowdown"].update(mean_ms=slowdown_ms, lo_ms=slowdown_ms - 0.1, hi_ms=slowdown_ms + 0.1)
            first = one["layers"][0]
            first["window_ms"] = 0.5
            for key, us in (("t_submit_us", 100), ("t_done_us", 1e3 * arrival_ms - 100)):
                first["ranks"][0][key].update(mean=us)
            envelope["results"].append(one)
        with open(self.path(name), "w", encoding="utf-8") as file:
            json.dump(envelope, file)
        return self.path(name)

    def test_the_papers_pairs(self):
        rows = json.loads(self.exposure("table3", "--format", "json"))["rows"]
        self.assertEqual([round(row["eq1_ms"], 2) for row in rows], [0.13, 0.63, 2.65, 2.65, 5.65, 5.65])
        self.assertEqual([round(row["sum_ms"], 2) for row in rows], [0.13, 0.63, 3.28, 3.88, 6.88, 7.88])

    def test_values_and_files(self):
        said = json.loads(self.exposure("--windows", "1:0.27,14:9.35", "--reads", "1:0.9,14:12", "--format", "json"))
        self.assertEqual([round(row["d_ms"], 2) for row in said["rows"]], [0.63, 2.02])
        self.assertIn("slowdown 2.65 ms; excesses added up 3.28 ms", said["footnotes"][0])
        windows, reads = (os.path.join(EXAMPLES, name) for name in ("windows.json", "reads.json"))
        said = json.loads(self.exposure("--windows", windows, "--reads", reads, "--resolve-ms", "0.1", "--format", "json"))
        self.assertAlmostEqual(said["rows"][0]["d_ms"], 2.34 + 0.1 - 0.27, places=6)
        said = json.loads(self.exposure("--windows", windows, "--reads", reads, "--pages", "1:400", "--step-ms", "59.4", "--format", "json"))
        self.assertAlmostEqual(said["rows"][0]["d_ms"], 0.3 + 1.22 - 0.54, places=6)

    def test_fit_and_check(self):
        runs = self.results("a.json", [(0.3, 0.05), (0.8, 0.35), (1.5, 1.05), (2.0, 1.55), (2.6, 2.15)])
        self.exposure("fit", runs, "--out", self.path("fit.json"), "--plot", self.path("residuals.svg"))
        with open(self.path("fit.json"), encoding="utf-8") as file:
            fit = json.load(file)
        self.assertAlmostEqual(fit["results"]["kappa_ms"]["estimate"], 0.05, places=6)
        self.assertLess(fit["results"]["rmse_ms"], 1e-6)
        self.assertTrue(xml.parse(self.path("residuals.svg")).getroot().tag.endswith("svg"))
        unseen = self.results("b.json", [(0.4, 0.05), (3.0, 2.55)])
        self.assertIn("2 of 2 measured intervals hold the prediction", self.exposure("check", unseen, "--model", self.path("fit.json")))
        said = self.exposure("fit", runs, "--fit-windows", "1", "--format", "json")
        self.assertIn("W of layer 1: 0.5", said)

    def test_bad_input(self):
        for arguments, said in [
            ([], "say --windows and --reads"),
            (["--windows", "1:x", "--reads", "1:1"], "'1:x' is no LAYER:VALUE"),
            (["--windows", "1:1", "--reads", "1:1,14:2"], "has no window of layer 14"),
            (["--windows", "1:1", "--reads", "1:1", "--pages", "1:700"], "--pages: needs a reads file"),
            (["--windows", "1:1", "--reads", "1:1", "--step-ms", "30"], "--step-ms scales the windows of a file"),
            (["--windows", "1:1", "--reads", os.path.join(EXAMPLES, "windows.json")], "windows.json"),
            (["--windows", "1:1,14:2", "--reads", os.path.join(EXAMPLES, "reads.json"), "--pages", "14:9"], "has no fit of layer 14"),
            (["fit", self.results("few.json", [(1, 1)])], "2 are needed"),
            (["fit", os.path.join(EXAMPLES, "reads.json")], "reads"),
            (["check", self.path("absent.json")], "absent.json"),
        ]:
            with self.subTest(said):
                self.assertIn(said, self.exposure(*arguments, code=2))


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""slacktier-probe as a user meets it: gates of the cpu device, its file, and what it refuses."""

import json
import os
import subprocess
import tempfile
import unittest

PROGRAM = os.path.join(os.environ["SLACKTIER_BIN"], "slacktier-probe")
QUICK = ["gates", "--samples", "20", "--idle-nodes", "4", "--idle-steps", "3", "--layer-us", "50"]


class Probe(unittest.TestCase):
    def run_probe(self, *arguments, code=0):
        ran = subprocess.run([PROGRAM, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             timeout=120)
        self.assertEqual(ran.returncode, code, f"{arguments}: {ran.stdout}{ran.stderr}")
        return ran

    def test_help(self):
        for command in [[], ["gates"]]:
            self.assertIn("slacktier-probe", self.run_probe(*command, "--help").stdout)

    def test_gates(self):
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "gates.json")
            ran = self.run_probe(*QUICK, "--out", out)
            self.assertIn("futex", ran.stdout)
            self.assertIn("warning: cpu: gates are emulated", ran.stdout)
            with open(out, encoding="utf-8") as file:
                written = json.load(file)
        self.assertEqual(written["schema"], "slacktier/gates/1.0")
        self.assertEqual(written["results"]["default_gate"], "futex")
        gate = written["results"]["gates"][0]
        self.assertEqual(gate["release_us"]["n"], 20)
        self.assertGreater(gate["release_us"]["p50"], 0)
        self.assertIsNone(gate["release_us"]["p99"])
        self.assertEqual(json.loads(self.run_probe(*QUICK, "--format", "json").stdout)["results"]["idle_nodes"], 4)

    def test_windows(self):
        with tempfile.TemporaryDirectory() as folder:
            out, plot = os.path.join(folder, "windows.json"), os.path.join(folder, "windows.svg")
            ran = self.run_probe("windows", "--model-layers", "6", "--layer-ms", "2", "--layers", "0,3", "--max-seconds", "20", "--out", out,
                                 "--plot", plot)
            self.assertIn("idle hooks", ran.stdout)
            with open(out, encoding="utf-8") as file:
                written = json.load(file)
            self.assertEqual([layer["k"] for layer in written["results"][0]["layers"]], [0, 3])
            self.assertEqual(written["results"][0]["step_ms"], 12)
            with open(plot, encoding="utf-8") as file:
                self.assertIn("<svg", file.read())
            self.assertIn("synthetic", self.run_probe("compare", out, out, "--format", "md").stdout)
        self.both()

    def both(self):
        ran = subprocess.run([PROGRAM, "both", "--model", "synthetic", "--model-layers", "3", "--layer-ms", "2", "--layers", "0,2", "--pairs", "1:5",
                              "--steps", "4", "--max-seconds", "20", "-q"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, timeout=120)
        # Where something else has the machine, the windows that it compares with stay unknown, which it says.
        if ran.returncode != 1 or "too few" not in ran.stderr and "noisier" not in ran.stderr:
            self.assertEqual(ran.returncode, 0, ran.stderr)
            self.assertIn("Eq. 1", ran.stdout)

    def test_windows_of_a_python_model(self):
        environment = {**os.environ, "PYTHONPATH": os.path.join(os.path.dirname(__file__), "..", "unit", "probe", "modules")}
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "windows.json")
            ran = subprocess.run([PROGRAM, "windows", "--model", "python:tiny_model:make", "--layers", "0,3", "--batch", "4,8", "--context", "9",
                                  "--max-seconds", "12", "--out", out, "-q", "--format", "csv"], env=environment, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
            if "built without Python" in ran.stderr:
                self.skipTest(ran.stderr)
            # How well it knows them depends on what else this machine does; that it ran does not.
            self.assertIn(ran.returncode, (0, 1), ran.stderr)
            self.assertIn("w_ms", ran.stdout)
            with open(out, encoding="utf-8") as file:
                written = json.load(file)
        self.assertEqual([(result["batch"], result["context"], result["model_layers"]) for result in written["results"]],
                         [(4, 9, 5), (8, 9, 5)])
        self.assertEqual(written["settings"]["model"], "tiny")
        self.assertIn("emulated_device", [warning["code"] for warning in written["warnings"]])
        self.assertIn("no_such_package", self.run_probe("windows", "--model", "python:no_such_package:make", code=3).stderr)

    def test_a_missing_torch_is_named_with_what_installs_it(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "torch.py"), "w", encoding="utf-8") as file:
                file.write("raise ModuleNotFoundError('there is none', name='torch')\n")
            ran = subprocess.run([PROGRAM, "windows", "--model", "owner/name", "-q"], env={**os.environ, "PYTHONPATH": folder},
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
            if "built without Python" in ran.stderr:
                self.skipTest(ran.stderr)
            self.assertEqual(ran.returncode, 3, ran.stderr)
            self.assertRegex(ran.stderr, "torch.*pip install torch")

    def test_windows_refusals(self):
        for code, part, arguments in [(2, "unknown model", ["--model", "gpt"]), (2, "no layer 7", ["--model-layers", "6", "--layers", "7"]),
                                      (2, "--watchdog-ms", ["--watchdog-ms", "5", "--layers", "1"]), (2, "unknown injector", ["--injector", "x"]),
                                      (2, "unknown device", ["--device", "gpu"]),
                                      (2, "twice", ["--batch", "8,8"]), (2, "no batch", ["--batch", "0"]),
                                      (2, "python:MODULE:FUNCTION", ["--model", "python:x"]), (2, "--layers-limit", ["--layers-limit", "2"]),
                                      (2, "--stock", ["--stock"]),
                                      (2, "--model-layers", ["--model", "python:x:y", "--model-layers", "6"])]:
            self.assertIn(part, self.run_probe("windows", *arguments, code=code).stderr)
        for code, part, arguments in [(2, "subcommand", []), (2, "unknown device", ["gates", "--device", "gpu"]),
                                      (2, "at least 1", ["gates", "--samples", "0"]), (2, "--layer-us", ["gates", "--layer-us", "-1"]),
                                      (2, "--format", ["gates", "--format", "xml"])]:
            ran = self.run_probe(*arguments, code=code)
            self.assertIn(part, ran.stderr)
            self.assertEqual(ran.stdout, "")


if __name__ == "__main__":
    unittest.main()

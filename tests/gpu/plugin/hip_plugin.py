#!/usr/bin/env python3
"""The HIP plug-in as built: code for each architecture, every symbol resolved, no runtime named, nothing spilled; and how programs fare
without a runtime, and without an AMD GPU."""

import glob
import os
import re
import subprocess
import unittest

BIN = os.environ["SLACKTIER_BIN"]
PLUGIN = os.path.join(BIN, "libslacktier_hip.so")
PROGRAM = os.path.join(BIN, "slacktier-probe")


def output(*command, **options):
    ran = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, **options)
    return ran.returncode, ran.stdout


class Plugin(unittest.TestCase):
    def test_code_for_each_architecture(self):
        with open(PLUGIN, "rb") as file:
            content = file.read()
        for arch in os.environ["SLACKTIER_HIP_ARCHS"].split():
            self.assertIn(f"amdgcn-amd-amdhsa--{arch}".encode(), content)

    def test_names_no_runtime_and_resolves_with_one(self):
        self.assertNotRegex(output("readelf", "-d", PLUGIN)[1], r"NEEDED.*(hip|hsa|rocm)")
        # Linked with -z defs: that it is there is the proof.
        resolved = os.path.join(os.environ["SLACKTIER_HIP"], "libslacktier_hip_resolved.so")
        self.assertRegex(output("readelf", "-d", resolved)[1], r"NEEDED.*amdhip64")
        exported = [line.split()[-1] for line in output("nm", "-D", "--defined-only", PLUGIN)[1].splitlines()]
        self.assertEqual([name for name in exported if not name.startswith("__hip")], ["slacktier_backend"])

    def test_nothing_is_spilled(self):
        kernels = 0
        for usage in glob.glob(os.path.join(os.environ["SLACKTIER_HIP"], "*.cu.o.usage")):
            with open(usage, encoding="utf-8") as file:
                text = file.read()
            kernels += len(re.findall(r"Function Name:", text))
            for what in ["SGPRs Spill", "VGPRs Spill", r"ScratchSize \[bytes/lane\]"]:
                for value in re.findall(what + r": (\d+)", text):
                    self.assertEqual(value, "0", f"{usage}: {what}")
        self.assertGreater(kernels, 8)

    def test_without_a_runtime(self):
        code, text = output(PROGRAM, "gates", "--device", "hip:0", env={**os.environ, "SLACKTIER_HIP_RUNTIME": "/nonexistent/libamdhip64.so"})
        self.assertEqual(code, 3, text)
        self.assertIn("there is no HIP runtime here", text)

    def test_without_the_plugin(self):
        code, text = output(PROGRAM, "gates", "--device", "hip:0", env={**os.environ, "SLACKTIER_HIP_PLUGIN": "/nonexistent/plugin.so"})
        self.assertEqual(code, 3, text)

    def test_without_a_gpu(self):
        if os.path.exists("/dev/kfd"):
            self.skipTest("there may be an AMD GPU")
        code, text = output(PROGRAM, "gates", "--device", "hip:0")
        self.assertEqual(code, 3, text)
        self.assertIn("hip", text)


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""Hugging Face models under the probe: layers found by structure, the cache rewound, and slacktier-probe with one. Small shapes,
random weights, on the CPU; skipped where neither SLACKTIER_TORCH_PYTHON nor this interpreter has torch and transformers."""

import json
import os
import subprocess
import sys
import tempfile

PACKAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python")
other = os.environ.get("SLACKTIER_TORCH_PYTHON")
if other and os.environ.get("SLACKTIER_TORCH_TEST") != "1":
    os.execve(other, [other, "-B", os.path.abspath(__file__)], {**os.environ, "SLACKTIER_TORCH_TEST": "1"})
try:
    import torch
    import transformers
except ImportError as missing:
    print(f"SKIPPED: {missing}; SLACKTIER_TORCH_PYTHON names a Python that has torch and transformers")
    sys.exit(77)

import unittest

sys.path.insert(0, PACKAGE)
from slacktier import errors, models, torch_graphs
from slacktier.layers import decoder_layers, owner

PROBE = os.path.join(os.environ["SLACKTIER_BIN"], "slacktier-probe")
LLAMA = {"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 5, "num_attention_heads": 4,
         "num_key_value_heads": 2, "vocab_size": 512}
GEMMA = {"model_type": "gemma4_text", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 4, "num_attention_heads": 4,
         "num_key_value_heads": 2, "vocab_size": 512, "vocab_size_per_layer_input": 512, "hidden_size_per_layer_input": 16, "head_dim": 16,
         "global_head_dim": 16, "num_kv_shared_layers": 0}


class Models(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def config(self, values):
        path = os.path.join(self.folder.name, "config.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(values, file)
        return path

    def load(self, name, **changes):
        options = {"model": name, "device": "cpu", "dtype": "float32", "random_weights": True, "layers_limit": 0, "overrides": [], "batch": 2,
                   "context": 8, "seed": 1, **changes}
        return models.load(**options)

    def known(self, values):
        try:
            transformers.AutoConfig.for_model(values["model_type"])
        except (ValueError, KeyError):
            self.skipTest(f"transformers {transformers.__version__} has no {values['model_type']}")

    def test_every_layer_is_hooked_and_the_cache_does_not_run_off_its_end(self):
        for values in (LLAMA, GEMMA):
            with self.subTest(model=values["model_type"]):
                self.known(values)
                loaded = self.load(self.config(values))
                self.assertEqual(loaded["layers"], values["num_hidden_layers"])
                calls = []
                steps, _ = models._models[loaded["model"]]
                for _ in range(40):
                    steps.run(lambda stream, what: calls.append(what))
                self.assertEqual(calls, [models.BEGIN, *range(loaded["layers"]), models.END] * 40)
                self.assertIn("random weights", loaded["label"])

    def test_limits_and_overrides(self):
        loaded = self.load(self.config(LLAMA), layers_limit=3, overrides=["hidden_size=32", "head_dim=8"])
        self.assertEqual(loaded["layers"], 3)
        self.assertIn("3 of 5 layers", loaded["label"])

    def test_what_is_wrong_is_named(self):
        with self.assertRaisesRegex(errors.UsageError, "no 'nope'"):
            self.load(self.config(LLAMA), overrides=["nope=1"])
        with self.assertRaisesRegex(errors.UsageError, "int3"):
            self.load(self.config(LLAMA), dtype="int3")
        with self.assertRaisesRegex(errors.UsageError, "no such file"):
            self.load(os.path.join(self.folder.name, "gone.json"))
        with self.assertRaisesRegex(errors.EnvironmentLacks, "does not know this model"):
            self.load(self.config({**LLAMA, "model_type": "no_such_model"}))
        if not torch.cuda.is_available():
            with self.assertRaisesRegex(errors.EnvironmentLacks, "sees no GPU"):
                self.load(self.config(LLAMA), device="cuda:0")

    def test_layers_are_found_by_structure(self):
        class Block(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.experts = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(9))

            def forward(self, x):
                return self.experts[1](self.experts[0](x))

        class Tower(torch.nn.Module):
            """With a vision tower that is longer, and experts that are more, than the layers."""

            def __init__(self):
                super().__init__()
                self.vision = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(12))
                self.inner = torch.nn.Module()
                self.inner.blocks = torch.nn.ModuleList(Block() for _ in range(3))

            def forward(self, x):
                for block in self.inner.blocks:
                    x = block(x)
                return x

        model = Tower()
        found = decoder_layers(model, lambda: model(torch.ones(1, 4)))
        self.assertEqual(found, list(model.inner.blocks))
        self.assertIs(owner(model, found), model.inner)
        with self.assertRaisesRegex(errors.UsageError, "no decoder layers found"):
            decoder_layers(torch.nn.Linear(4, 4))

    def test_the_operation_that_cannot_be_captured_is_named(self):
        try:
            raise RuntimeError("operation not permitted when stream is capturing")
        except RuntimeError as error:
            self.assertRegex(torch_graphs.operation_of(error), r"`raise RuntimeError.*torch_models.py:\d+\): operation not permitted")

    def test_the_program(self):
        if sys.prefix == sys.base_prefix:
            self.skipTest("this Python is no virtual environment, so that the program cannot be told of it")
        out = os.path.join(self.folder.name, "windows.json")
        ran = subprocess.run([PROBE, "windows", "--model", self.config(LLAMA), "--random-weights", "--dtype", "float32", "--layers", "0,2",
                              "--max-seconds", "10", "--out", out, "-q"], env={**os.environ, "VIRTUAL_ENV": sys.prefix},
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
        if "this program embeds" in ran.stderr or "built without Python" in ran.stderr:
            self.skipTest(ran.stderr)
        self.assertIn(ran.returncode, (0, 1), ran.stderr)
        with open(out, encoding="utf-8") as file:
            result, = json.load(file)["results"]
        self.assertEqual(result["model_layers"], 5)


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""Hugging Face models under the probe: layers found by structure, the cache rewound, and slacktier-probe with one. Small shapes,
random weights, on the CPU, or captured on the GPU that SLACKTIER_TEST_DEVICE names; skipped where neither SLACKTIER_TORCH_PYTHON nor
this interpreter has torch and transformers."""

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

from torch.utils._python_dispatch import TorchDispatchMode

sys.path.insert(0, PACKAGE)
from slacktier import capturable, decode_path, errors, models, torch_graphs, torch_step
from slacktier.layers import decoder_layers, owner

PROBE = os.path.join(os.environ["SLACKTIER_BIN"], "slacktier-probe")
LLAMA = {"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 5, "num_attention_heads": 4,
         "num_key_value_heads": 2, "vocab_size": 512}
GEMMA = {"model_type": "gemma4_text", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 4, "num_attention_heads": 4,
         "num_key_value_heads": 2, "vocab_size": 512, "vocab_size_per_layer_input": 512, "hidden_size_per_layer_input": 16, "head_dim": 16,
         "global_head_dim": 16, "num_kv_shared_layers": 2, "layer_types": ["sliding_attention", "full_attention"] * 2, "sliding_window": 8}
QWEN = {"model_type": "qwen4_exp_text", "hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2,
        "head_dim": 32, "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "shared_expert_intermediate_size": 32,
        "vocab_size": 512, "eos_token_id": 511, "hc_lowrank": 16, "linear_key_head_dim": 16, "linear_value_head_dim": 16,
        "linear_num_key_heads": 2, "linear_num_value_heads": 4, "ple_layer_ids": [2], "ple_embed_dim": 64, "ngram_vocab_size_base": 101,
        "heads_per_ngram": 4, "indexer_n_heads": 2, "indexer_kv_heads": 1, "indexer_head_dim": 32, "indexer_budget": 16,
        "indexer_compress_ratio": 4, "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5}}
DEEPSEEK = {"model_type": "deepseek_v4", "hidden_size": 64, "num_hidden_layers": 4, "moe_intermediate_size": 32, "num_attention_heads": 4,
            "head_dim": 32, "q_lora_rank": 16, "n_routed_experts": 8, "num_experts_per_tok": 2, "vocab_size": 512, "sliding_window": 16,
            "o_groups": 2, "o_lora_rank": 16, "index_n_heads": 2, "index_head_dim": 16, "index_topk": 4, "hc_mult": 2,
            "hc_sinkhorn_iters": 3, "compress_rates": {"compressed_sparse_attention": 4, "heavily_compressed_attention": 16},
            "partial_rotary_factor": 0.5}
ALL = (LLAMA, GEMMA, QWEN, DEEPSEEK)
CONTEXT = 21  # not a whole number of anybody's windows and blocks
DEVICE = os.environ.get("SLACKTIER_TEST_DEVICE", "cpu")


class HostWork(TorchDispatchMode):
    """Refuses what no capture allows: operations whose result's shape or value the host has to know, and copies from the host."""

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        name = function.__name__
        tensors = [value for value in [*arguments, *(keywords or {}).values()] if isinstance(value, torch.Tensor)]
        result = function(*arguments, **(keywords or {}))
        masks = any(index is not None and index.dtype == torch.bool for index in arguments[1]) if name.startswith("index.") else False
        if masks or any(word in name for word in ("local_scalar", "nonzero", "masked_select", "unique", "bincount")):
            raise AssertionError(f"{name} waits for the device")
        if isinstance(result, torch.Tensor) and result.device.type == "meta" and any(t.device.type == "cpu" for t in tensors):
            raise AssertionError(f"{name} copies from the host")
        return result


class Keys:
    """A cache with these indexer keys."""

    def __init__(self, keys):
        self.keys = keys

    def update_indexer(self, keys, layer):
        return self.keys


class Made(unittest.TestCase):
    """What makes models of configs, and runs the program."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def config(self, values):
        path = os.path.join(self.folder.name, "config.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(values, file)
        return path

    def load(self, name, **changes):
        options = {"model": name, "device": "cpu", "dtype": "float32", "random_weights": True, "stock": False, "layers_limit": 0, "overrides": [], "batch": 2,
                   "context": CONTEXT, "seed": 1, **changes}
        return models.load(**options)

    def known(self, values):
        try:
            transformers.AutoConfig.for_model(values["model_type"])
        except (ValueError, KeyError):
            self.skipTest(f"transformers {transformers.__version__} has no {values['model_type']}")

    def probe(self, *arguments):
        """slacktier-probe windows, with Python embedded or, where that is of another version, in this one."""
        arguments = ["windows", *arguments, "-q"]
        environment = {**os.environ, "VIRTUAL_ENV": sys.prefix, "PYTHONPATH": self.folder.name}
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "timeout": 300}
        ran = subprocess.run([PROBE, *arguments], env=environment, **options)
        if "this program embeds" in ran.stderr or "built without Python" in ran.stderr:
            package = os.path.join(os.environ.get("SLACKTIER_BUILD", ""), "python-package")
            environment["PYTHONPATH"] += os.pathsep + package
            ran = subprocess.run([sys.executable, "-m", "slacktier.probe", *arguments], env=environment, **options)
            if "_native" in ran.stderr or "No module named 'slacktier'" in ran.stderr:
                self.skipTest(ran.stderr)
        return ran


class Models(Made):
    def test_every_layer_is_hooked_and_the_cache_does_not_run_off_its_end(self):
        for values in ALL:
            with self.subTest(model=values["model_type"]):
                self.known(values)
                loaded = self.load(self.config(values))
                self.assertEqual(loaded["layers"], values["num_hidden_layers"])
                calls = []
                steps, _ = models._models[loaded["model"]]
                for _ in range(30):
                    steps.run(lambda stream, what: calls.append(what))
                self.assertEqual(calls, [models.BEGIN, *range(loaded["layers"]), models.END] * 30)
                self.assertIn("random weights", loaded["label"])

    def model(self, values):
        return transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.for_model(**json.loads(json.dumps(values)))).eval()

    def test_the_decode_path_computes_what_the_stock_model_does(self):
        for values in ALL:
            with self.subTest(model=values["model_type"]), torch.inference_mode():
                self.known(values)
                model = self.model(values)
                capturable.prepare(model, True)
                for parameter in model.parameters():
                    if parameter.dim() == 1:  # norms' weights and sinks, which would all be 0 or 1
                        parameter.add_(torch.rand_like(parameter) * 0.2)
                stock = torch_step.HuggingFaceModel(model, 3, CONTEXT, "model", "", 1, stock=True)
                self.keep(stock.state)
                wanted = stock.step()
                self.assertEqual(decode_path.prepare(model), ["grouped attention", "fused norms"])
                made = torch_step.HuggingFaceModel(model, 3, CONTEXT, "model", "", 1)
                self.assertEqual("written in place" in made.label, values is GEMMA)
                self.keep(made.state)
                torch.testing.assert_close(made.step(), wanted, rtol=1e-4, atol=1e-4)

    def keep(self, state):
        """Puts the same numbers into every cache."""
        torch.manual_seed(11)
        state.rewind()
        for layer in state.cache.layers:
            for name in sorted(vars(layer)):
                value = vars(layer)[name]
                for tensor in value.values() if isinstance(value, dict) else [value]:
                    if isinstance(tensor, torch.Tensor) and tensor.dim() > 1 and tensor.is_floating_point():
                        tensor.copy_(torch.randn(tensor.shape))

    def test_other_attention_than_decoding_is_the_stock_one(self):
        model = self.model(LLAMA)
        tokens = torch.arange(12)[None] + 3
        with torch.inference_mode():
            wanted = model(input_ids=tokens).logits
            decode_path.prepare(model)
            torch.testing.assert_close(model(input_ids=tokens).logits, wanted, rtol=1e-4, atol=1e-4)

    def test_a_step_asks_nothing_of_the_host(self):
        """On tensors without values: what would need one fails, too."""
        for values in ALL:
            with self.subTest(model=values["model_type"]):
                self.known(values)
                model = self.model(values).to(torch.bfloat16)
                capturable.prepare(model, True)
                decode_path.prepare(model)
                model.to("meta")
                made = torch_step.HuggingFaceModel(model, 3, CONTEXT, "model", "", 1)
                with torch_graphs.KeptConstants() as constants:
                    made.step()
                    made.rewind()
                    with HostWork(), constants:
                        made.step()

    def test_a_kept_cache_gives_the_same_step_again(self):
        self.known(DEEPSEEK)
        loaded = self.load(self.config(DEEPSEEK))
        made = models._models[loaded["model"]][0].model
        self.assertIn("dynamic cache", loaded["label"])
        first = made.step()
        made.rewind()
        self.assertTrue(torch.equal(first, made.step()))
        self.assertFalse(torch.allclose(first[0], first[1]))  # every sequence has a token of its own
        for module in made.model.modules():
            if hasattr(module, "tid2eid"):
                self.assertTrue((module.tid2eid[:, 0] != module.tid2eid[:, 1]).all())
                self.assertEqual(set(module.tid2eid.unique().tolist()), set(range(8)))

    def test_the_indexer_of_fixed_shape_selects_what_the_stock_one_does(self):
        self.known(QWEN)
        made = models._models[self.load(self.config(QWEN))["model"]][0].model
        indexer = next(module for module in made.model.modules() if type(module).__name__ == "Qwen4ExpTextQSAIndexer")
        torch.manual_seed(3)
        for length in (3, 16, 17, 33, 95):
            hidden, keys = torch.randn(3, 1, 64), torch.randn(3, length, 32)
            angles = torch.randn(3, length, 16)
            for mask in (torch.ones(3, 1, 1, length, dtype=torch.bool), torch.zeros(3, 1, 1, length)):
                arguments = (hidden, (angles.cos(), angles.sin()), mask, Keys(keys))
                with self.subTest(length=length, mask=mask.dtype), torch.inference_mode():
                    self.assertTrue(torch.equal(indexer(*arguments), type(indexer).forward(indexer, *arguments)))

    def test_a_layer_kind_without_any_cache_is_named(self):
        config = transformers.AutoConfig.for_model(**LLAMA)
        config.layer_types = ["no_such_attention"] * 5
        with self.assertRaisesRegex(errors.CheckFailed, "no cache for layers of kind 'no_such_attention'"):
            torch_step.HuggingFaceModel(transformers.AutoModelForCausalLM.from_config(config), 1, 1, "model", "", 1)

    def test_constants_are_made_once_and_are_everybodys_own(self):
        with torch_graphs.KeptConstants() as constants:
            first, second = torch.tensor([-1, 2]), torch.tensor([-1, 2])
            first[0] = 7
            self.assertEqual((second.tolist(), torch.tensor([-1, 2]).tolist()), ([-1, 2], [-1, 2]))
            self.assertEqual(torch.tensor([-1, 2], dtype=torch.float64).dtype, torch.float64)
        self.assertEqual(len(constants.made), 2)

    def test_limits_and_overrides(self):
        loaded = self.load(self.config(LLAMA), layers_limit=3, overrides=["hidden_size=32", "head_dim=8"])
        self.assertEqual(loaded["layers"], 3)
        self.assertIn("3 of 5 layers", loaded["label"])
        self.assertIn("fused norms", loaded["label"])
        self.assertNotIn("fused norms", self.load(self.config(LLAMA), stock=True)["label"])
        self.known(GEMMA)
        self.assertEqual(self.load(self.config(GEMMA), layers_limit=3)["layers"], 3)  # of the two layers that share keys one is left

    def test_what_is_wrong_is_named(self):
        with self.assertRaisesRegex(errors.UsageError, "no 'nope'"):
            self.load(self.config(LLAMA), overrides=["nope=1"])
        with self.assertRaisesRegex(errors.UsageError, "int3"):
            self.load(self.config(LLAMA), dtype="int3")
        with self.assertRaisesRegex(errors.UsageError, "no such file"):
            self.load(os.path.join(self.folder.name, "gone.json"))
        with self.assertRaisesRegex(errors.EnvironmentLacks, "does not know this model"):
            self.load(self.config({**LLAMA, "model_type": "no_such_model"}))
        for text, part in [('{"model_type": "llama",', "config.json:1: this is no JSON"), ("[1]", "object with a model_type"),
                           (json.dumps({**LLAMA, "hidden_size": "x"}), "hidden_size.*expected int"),
                           (json.dumps({**LLAMA, "num_attention_heads": 5}), "not a multiple of")]:
            path = self.config({})
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            with self.subTest(part=part), self.assertRaisesRegex(errors.UsageError, part):
                self.load(path)
        with self.assertRaisesRegex(errors.UsageError, "--config hidden_size=x: .*expected int"):
            self.load(self.config(LLAMA), overrides=["hidden_size=x"])
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
        ran = self.probe("--model", self.config(LLAMA), "--random-weights", "--dtype", "float32", "--layers", "0,2", "--max-seconds", "10",
                         "--out", out)
        self.assertIn(ran.returncode, (0, 1), ran.stderr)
        with open(out, encoding="utf-8") as file:
            result, = json.load(file)["results"]
        self.assertEqual(result["model_layers"], 5)


WIDE = {"hidden_size": 1024, "intermediate_size": 4096, "num_attention_heads": 16, "num_key_value_heads": 8}
ASKING = """
import torch
class Asking:
    capture = True
    def __init__(self, skip):
        self.layers, self.skip = torch.nn.ModuleList(torch.nn.Linear(8, 8, device="cuda") for _ in range(3)), skip
    def step(self):
        x = torch.ones(2, 8, device="cuda")
        for layer in list(self.layers)[self.skip:]:
            x = layer(x)
        return x if self.skip else x * x.sum().item()
def asks(batch, context, device):
    return Asking(0)
def bypasses(batch, context, device):
    return Asking(1)
"""


@unittest.skipIf(DEVICE == "cpu" or not torch.cuda.is_available(), "no GPU, or none that this torch sees")
class OnTheGpu(Made):
    def test_a_captured_step_has_all_hooks_and_can_be_replayed(self):
        for values in ALL:
            with self.subTest(model=values["model_type"]):
                self.known(values)
                loaded = self.load(self.config(values), device=DEVICE, dtype="bfloat16")
                calls = []
                steps, _ = models._models[loaded["model"]]
                graph = steps.capture(lambda stream, what: calls.append((stream, what)))
                self.assertEqual([what for _, what in calls], [models.BEGIN, *range(loaded["layers"]), models.END])
                self.assertEqual(len({stream for stream, _ in calls}), 1)
                self.assertNotEqual(calls[0][0], 0)
                for _ in range(30):
                    steps.replay(graph)

    def test_a_captured_step_gives_what_the_eager_one_does(self):
        self.known(DEEPSEEK)
        loaded = self.load(self.config(DEEPSEEK), device=DEVICE, dtype="bfloat16")
        steps, _ = models._models[loaded["model"]]
        made, given = steps.model, []
        eager = made.step()
        made.rewind()
        step = made.step
        made.step = lambda: given.append(step()) or given[-1]
        steps.replay(steps.capture(lambda stream, what: None))
        torch.testing.assert_close(given[-1], eager, rtol=0.05, atol=0.05)

    def test_windows_of_a_captured_model(self):
        out = os.path.join(self.folder.name, "windows.json")
        ran = self.probe("--model", self.config({**LLAMA, **WIDE}), "--random-weights", "--layers", "all", "--batch", "8", "--context", "256",
                         "--device", DEVICE, "--max-seconds", "8", "--out", out)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        with open(out, encoding="utf-8") as file:
            result, = json.load(file)["results"]
        self.assertEqual([layer["k"] for layer in result["layers"]], [0, 1, 2, 3, 4])
        self.assertLess(result["layers"][0]["w_ms"], result["step_ms"] / 5)

    def test_bad_input(self):
        with open(os.path.join(self.folder.name, "asking.py"), "w", encoding="utf-8") as file:
            file.write(ASKING)
        for function, part in [("asks", "x.sum().item()"), ("bypasses", "hooks did not enter the graph")]:
            with self.subTest(part=part):
                ran = self.probe("--model", "python:asking:" + function, "--device", DEVICE, "--layers", "0", "--max-seconds", "5")
                self.assertEqual(ran.returncode, 1, ran.stderr)
                self.assertIn(part, ran.stderr)
        for part, changes in [("smaller batch or context", {"batch": 1_000_000, "context": 100_000}),
                              ("--layers-limit", {"overrides": ["vocab_size=100000000000"]})]:
            with self.subTest(part=part), self.assertRaisesRegex(errors.EnvironmentLacks, part):
                self.load(self.config(LLAMA), device=DEVICE, dtype="bfloat16", **changes)


if __name__ == "__main__":
    unittest.main()

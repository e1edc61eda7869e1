#!/usr/bin/env python3
"""The Python package: a model in its own loop, plug-ins in engines that call them in SGLang's and vLLM's order, the load, and
slacktier-probe windows --attach from outside. No torch: models here only call their hooks as torch's do."""

import contextlib
import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest

PACKAGE = os.path.join(os.environ["SLACKTIER_BUILD"], "python-package")
PROBE = os.path.join(os.environ["SLACKTIER_BIN"], "slacktier-probe")
sys.path.insert(0, PACKAGE)
if not os.path.exists(os.path.join(PACKAGE, "slacktier", "_native.so")):
    print("SKIPPED: the native module was not built (python3-dev, pybind11-dev)")
    sys.exit(77)
try:
    import slacktier._native
except ImportError as reason:
    print(f"SKIPPED: the native module is for another interpreter than this: {reason}")
    sys.exit(77)
import slacktier
from slacktier import errors, load, sglang_plugin, vllm_plugin

LAYERS = 4


class ModuleList(list):
    """Named as torch's."""


class Module:
    """Calls its hooks as torch's modules do."""

    def __init__(self, forward, **children):
        self.forward, self.children, self.before, self.after = forward, children, [], []

    def named_modules(self, prefix=""):
        yield prefix.rstrip("."), self
        for name, child in self.children.items():
            if isinstance(child, ModuleList):
                yield prefix + name, child
            else:
                yield from child.named_modules(prefix + name + ".")

    def register_forward_pre_hook(self, hook, with_kwargs=False):
        self.before.append((hook, with_kwargs))

    def register_forward_hook(self, hook):
        self.after.append(hook)

    def __call__(self, *arguments, **keywords):
        for hook, with_keywords in self.before:
            hook(self, arguments, keywords) if with_keywords else hook(self, arguments)
        result = self.forward(*arguments, **keywords)
        for hook in self.after:
            hook(self, arguments, result)
        return result


def layered(seconds=0.0):
    """A model and its layers."""
    layers = ModuleList(Module(lambda: time.sleep(seconds)) for _ in range(LAYERS))
    return Module(lambda *_, **__: [layer() for layer in layers], layers=layers), layers


class Graphs:
    """Stands for a GPU: while it captures, what hooks do is noted; replaying does it."""

    device = "cuda:0"

    def __init__(self):
        self.capturing = None

    def stream(self):
        return 7

    def counts(self):
        return self.capturing is not None


class Native:
    """Stands for the native module on a GPU: notes what is queued on the stream."""

    made = []

    def __init__(self, directory, rank, layers, device):
        self.rank, self.layers, self.device, self.calls = rank, layers, device, []
        Native.made.append(self)

    def begin(self, stream, batch, decode):
        self.calls.append(("begin", stream, batch, decode))
        self.nodes = 1

    def layer(self, stream, layer):
        self.calls.append(("layer", layer))
        self.nodes += 1

    def end(self, stream):
        self.calls.append(("end",))
        self.nodes += 1

    def queued(self):
        return self.nodes


def step_of(batch):
    return [("begin", 7, batch, True), *[("layer", k) for k in range(LAYERS)], ("end",)]


class SglangEngine:
    """ModelRunner as SGLang starts it: the model is loaded, init_backends captures a graph for each batch: two eager forwards, then
    a captured one. It calls the model's forward itself, which calls the module with the layers."""

    def __init__(self, batches, runtime, two_batch_overlap=False):
        self.inner, self.layers = layered()
        self.model = Module(lambda *arguments: self.inner(*arguments), model=self.inner)
        self.server_args = types.SimpleNamespace(enable_torch_compile=False, enable_two_batch_overlap=two_batch_overlap)
        self.tp_rank, self.batches, self.runtime = 1, batches, runtime

    def init_backends(self):
        for batch in self.batches:
            forward = types.SimpleNamespace(batch_size=batch, forward_mode=types.SimpleNamespace(is_decode=lambda: True))
            for _ in range(2):
                self.model.forward(None, None, forward)
            self.runtime.capturing = batch
            self.model.forward(None, None, forward)
            self.runtime.capturing = None


class Plugins(unittest.TestCase):
    def setUp(self):
        Native.made.clear()

    @contextlib.contextmanager
    def engine_process(self, runtime):
        """What a plug-in finds there: a directory to attach in, a GPU, the native module."""
        with unittest.mock.patch.dict(os.environ, {"SLACKTIER_ATTACH": "somewhere"}), \
                unittest.mock.patch("slacktier._native.Attachment", Native), \
                unittest.mock.patch("slacktier.hooks.TorchRuntime", lambda device: runtime):
            yield

    def test_sglang_hooks_are_there_before_the_capture(self):
        runtime = Graphs()
        engine = SglangEngine([1, 8], runtime)
        # The registry wraps the method; its own hook is called first, with the runner.
        registered = []
        registry = types.ModuleType("sglang.srt.plugins.hook_registry")
        registry.HookType = types.SimpleNamespace(BEFORE="before")
        registry.HookRegistry = types.SimpleNamespace(register=lambda *entry: registered.append(entry))
        with unittest.mock.patch.dict(sys.modules, {"sglang": types.ModuleType("sglang"), "sglang.srt": types.ModuleType("sglang.srt"),
                                                    "sglang.srt.plugins": types.ModuleType("sglang.srt.plugins"),
                                                    "sglang.srt.plugins.hook_registry": registry}):
            with unittest.mock.patch.dict(os.environ, {"SLACKTIER_ATTACH": ""}):
                sglang_plugin.register()
                self.assertEqual(registered, [])
            with unittest.mock.patch.dict(os.environ, {"SLACKTIER_ATTACH": "somewhere"}):
                sglang_plugin.register()
        (target, hook, kind), = registered
        self.assertEqual((target, kind), ("sglang.srt.model_executor.model_runner.ModelRunner.init_backends", "before"))
        with self.engine_process(runtime):
            self.assertIsNone(hook(engine))
            engine.init_backends()
        native, = Native.made
        self.assertEqual((native.rank, native.layers), (1, LAYERS))
        self.assertEqual(native.calls, step_of(1) + step_of(8))
        self.assertEqual(engine.slacktier.nodes, {1: LAYERS + 2, 8: LAYERS + 2})

    def test_bypassed_layers_are_an_error(self):
        runtime = Graphs()
        engine = SglangEngine([8], runtime, two_batch_overlap=True)
        engine.inner.forward = lambda *_: [layer() for layer in engine.layers[::2]]
        with self.engine_process(runtime):
            sglang_plugin.attach_runner(engine)
            with self.assertRaisesRegex(errors.CheckFailed, "4 of 6 hooks entered the graph"):
                engine.init_backends()

    def test_vllm_hooks_follow_the_loading(self):
        runtime = Graphs()

        class Runner:
            def load_model(self):
                self.model, _ = layered()

        vllm_plugin.wrap(Runner)
        vllm_plugin.wrap(Runner)
        runner = Runner()
        with self.engine_process(runtime):
            runner.load_model()
        tokens = types.SimpleNamespace(shape=(16,))
        runner.model(input_ids=tokens, positions=None)
        runtime.capturing = 16
        runner.model(input_ids=tokens, positions=None)
        native, = Native.made
        self.assertEqual(native.calls, step_of(16))

    def test_a_forward_tells_its_batch(self):
        from slacktier.hooks import batch_of

        def tensor(*shape, floating=False):
            return types.SimpleNamespace(shape=shape, is_floating_point=lambda: floating)

        for given, wanted in [((tensor(8),), (8, True)), ((tensor(8, 1),), (8, True)), ((tensor(8, 20),), (8, False)),
                              ((tensor(8, 64, floating=True),), (8, True)), ((tensor(8, 1, 64, floating=True),), (8, True)),
                              ((tensor(8, 20, 64, floating=True),), (8, False)), (([0] * 4,), (4, True)), ((), (1, True))]:
            self.assertEqual(batch_of(given, {}), wanted)

    def test_attach_needs_a_directory(self):
        with unittest.mock.patch.dict(os.environ, {"SLACKTIER_ATTACH": ""}):
            with self.assertRaisesRegex(errors.UsageError, "SLACKTIER_ATTACH"):
                slacktier.attach(layered()[0])


class Server:
    """An OpenAI-compatible server that streams until its client leaves; or one that refuses."""

    def __init__(self, refuses=False):
        bodies = self.bodies = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                data = json.dumps({"data": [{"id": "stand-in"}]}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def do_POST(self):
                bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(503 if refuses else 200)
                self.end_headers()
                try:
                    while not refuses:
                        self.wfile.write(b'data: {"choices": [{"text": "x"}]}\n\n')
                        self.wfile.flush()
                        time.sleep(0.005)
                except OSError:
                    pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


class Loads(unittest.TestCase):
    def test_requests_are_held(self):
        with Server() as server:
            self.assertEqual(load.start(server.url, 5), {"model": "stand-in"})
            try:
                until = time.monotonic() + 60
                while load.status()["streaming"] < 5 and time.monotonic() < until:
                    time.sleep(0.01)
                self.assertEqual(load.status()["streaming"], 5)
            finally:
                load.stop()
        for body in server.bodies:
            self.assertEqual((body["stream"], body["ignore_eos"], body["model"]), (True, True, "stand-in"))
        self.assertEqual(len({body["prompt"] for body in server.bodies}), 5)

    def test_what_is_wrong_with_a_server(self):
        with self.assertRaises(errors.UsageError):
            load.start("ftp://somewhere", 1)
        with Server() as server:
            url = server.url
        with self.assertRaisesRegex(errors.EnvironmentLacks, "no server answers"):
            load.start(url, 1)


ENGINE = """
import sys, time
sys.path[:0] = [sys.argv[1], sys.argv[2]]
import slacktier, attach
model, layers = attach.layered(0.001)
slacktier.attach(model, sys.argv[3], rank=int(sys.argv[4]), layers=layers)
print("attached", flush=True)
while True:
    model([0] * 4)
"""


class Probed(unittest.TestCase):
    def probe(self, *arguments):
        return subprocess.run([PROBE, "windows", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, timeout=300)

    def test_a_model_in_its_own_loop(self):
        with tempfile.TemporaryDirectory() as folder, Server() as server:
            out, directory = os.path.join(folder, "windows.json"), os.path.join(folder, "attach")
            engines = []
            try:
                for rank in range(2):
                    engines.append(subprocess.Popen([sys.executable, "-B", "-c", ENGINE, PACKAGE, os.path.dirname(__file__), directory,
                                                     str(rank)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True))
                for engine in engines:
                    self.assertEqual(engine.stdout.readline(), "attached\n")
                ran = self.probe("--attach", directory, "--ranks", "2", "--batch", "4", "--layers", "1,3", "--max-seconds", "8",
                                 "--attach-timeout", "60", "--load", server.url, "--out", out, "-q")
                # How well it knows them depends on what else this machine does; that it ran does not.
                self.assertIn(ran.returncode, (0, 1), ran.stderr)
                self.assertIn("an engine of 2 ranks", ran.stdout)
                with open(out, encoding="utf-8") as file:
                    written = json.load(file)
                self.assertEqual((written["settings"]["model"], written["settings"]["ranks"]), ("stand-in", 2))
                result, = written["results"]
                self.assertEqual((result["batch"], result["model_layers"], [layer["k"] for layer in result["layers"]]), (4, LAYERS, [1, 3]))
                self.assertIsNone(result["perturbation_ms"])
                self.assertGreaterEqual(result["step_ms"], LAYERS * 1.0)
                late = self.probe("--attach", directory, "--batch", "9", "--layers", "1", "--attach-timeout", "4", "-q")
                self.assertEqual(late.returncode, 3, late.stderr)
                self.assertIn("of batch 4", late.stderr)
            finally:
                for engine in engines:
                    engine.kill()
                    engine.communicate()

    def test_refusals(self):
        with tempfile.TemporaryDirectory() as folder:
            for code, part, arguments in [(2, "--attach", ["--ranks", "2"]), (2, "one batch", ["--attach", folder, "--batch", "1,2"]),
                                          (2, "host nodes only", ["--attach", folder, "--injector", "device-clock"]),
                                          (3, "no engine has attached for rank 0", ["--attach", folder, "--attach-timeout", "0.1"])]:
                ran = self.probe(*arguments)
                self.assertEqual(ran.returncode, code, ran.stderr)
                self.assertIn(part, ran.stderr)

    def test_the_probe_in_this_interpreter(self):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([PACKAGE, os.path.join(os.path.dirname(__file__), "..", "unit", "probe",
                                                                                           "modules")])}
        for code, part, arguments in [(0, "slacktier-probe", ["--help"]), (2, "unknown model", ["windows", "--model", "gpt"]),
                                      (2, "has no 'gone'", ["windows", "--model", "python:tiny_model:gone"])]:
            ran = subprocess.run([sys.executable, "-B", "-m", "slacktier.probe", *arguments], env=environment, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
            self.assertEqual(ran.returncode, code, ran.stderr)
            self.assertIn(part, ran.stdout + ran.stderr)


if __name__ == "__main__":
    import unittest.mock

    unittest.main()

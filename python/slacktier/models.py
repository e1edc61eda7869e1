"""Models as slacktier-probe steps them, by number: load, capture a step with hooks in it, replay it.

What `python:MODULE:FUNCTION` returns, when called with batch, context and device, is an object with
    layers   the decoder layers in depth order: torch modules, or whatever calls its forward pre-hooks
    step()   runs one decode step
and, if it likes, `name`, `label` (what a table's head says of it), `rewind()` (called after each step, for caches that advance)
and `capture` (true: torch tensors on a GPU, so that the step is captured in a graph).
"""

import ctypes
import importlib
import itertools
import os

from slacktier import errors

BEGIN, END = -1, -2

_numbers = itertools.count(1)
_models = {}


class Hook:
    """A hook of the program's, called by address with the stream's native handle (0: none) and BEGIN, END or a layer."""

    def __init__(self, function, user):
        self._call = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)(function)
        self._user = user

    def __call__(self, stream, what):
        if self._call(self._user, stream, what) != 0:
            raise errors.CheckFailed("a hook of the probe failed")  # the program knows why


class EagerSteps:
    """Runs the model's step itself each time, hooks included: for a CPU, where nothing is captured."""

    def __init__(self, model):
        self.model = model
        self.active = None
        for k, layer in enumerate(model.layers):
            layer.register_forward_pre_hook(lambda *_, k=k: self._before(k))

    def _before(self, layer):
        if self.active is not None:
            self.active(self.stream(), layer)

    def stream(self):
        return 0

    def run(self, hook):
        self.active = hook
        try:
            hook(self.stream(), BEGIN)
            self.model.step()
            hook(self.stream(), END)
        finally:
            self.active = None
        self.rewind()

    def rewind(self):
        if hasattr(self.model, "rewind"):
            self.model.rewind()

    def capture(self, hook):
        self.run(hook)
        return hook

    def replay(self, step):
        self.run(step)


def _made_by_user(model, arguments):
    parts = model.split(":")
    if len(parts) != 3 or not all(parts):
        raise errors.UsageError(f"--model {model}: write python:MODULE:FUNCTION")
    module = importlib.import_module(parts[1])
    if not hasattr(module, parts[2]):
        raise errors.UsageError(f"--model {model}: {parts[1]} has no '{parts[2]}'")
    made = getattr(module, parts[2])(**arguments)
    if not len(getattr(made, "layers", ())) or not callable(getattr(made, "step", None)):
        raise errors.UsageError(f"--model {model}: what it returns must have layers, one at least, and step()")
    return made


def load(model, device, dtype, random_weights, stock, layers_limit, overrides, batch, context, seed):
    if model.startswith("python:"):
        made = _made_by_user(model, {"batch": batch, "context": context, "device": device})
    else:
        from slacktier import torch_models

        made = torch_models.load(os.path.expanduser(model), device, dtype, random_weights, stock, layers_limit, overrides, batch,
                                 context, seed)
    if getattr(made, "capture", False):
        from slacktier import torch_graphs

        steps = torch_graphs.GraphSteps(made)
    else:
        steps = EagerSteps(made)
    number = next(_numbers)
    _models[number] = (steps, {})
    return {"model": number, "layers": len(made.layers), "name": getattr(made, "name", model), "label": getattr(made, "label", "")}


def capture(model, hook):
    steps, captured = _models[model]
    number = next(_numbers)
    captured[number] = steps.capture(Hook(**hook))
    return number


def replay(model, step):
    steps, captured = _models[model]
    steps.replay(captured[step])


def release(model, step):
    if model in _models:
        _models[model][1].pop(step, None)


def unload(model):
    _models.pop(model, None)

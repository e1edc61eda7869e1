"""Steps captured by torch's graphs."""

import os
import traceback

import torch
from torch.overrides import TorchFunctionMode

from slacktier import errors, models


class KeptConstants(TorchFunctionMode):
    """Small tensors that a forward makes of Python's numbers, torch.tensor([-1], device=...), are copied from the host, which no
    capture allows. Made once outside of it, they are copied on the device from then on."""

    def __init__(self):
        super().__init__()
        self.made = {}

    def __torch_function__(self, function, types, arguments=(), keywords=None):
        keywords = keywords or {}
        if function is not torch.tensor or keywords.get("requires_grad") or not _plain(arguments[0] if arguments else None):
            return function(*arguments, **keywords)
        key = repr((arguments, sorted(keywords.items(), key=lambda entry: entry[0])))
        if key not in self.made:
            self.made[key] = function(*arguments, **keywords)
        return self.made[key].clone()  # whoever writes into his own does not write into everybody's


def _plain(value):
    if isinstance(value, (list, tuple)):
        return all(_plain(part) for part in value)
    return isinstance(value, (bool, int, float))


class GraphSteps(models.EagerSteps):
    """Captures the step by torch's graphs, in thread-local mode: other threads of the program use the runtime meanwhile."""

    def __init__(self, model):
        super().__init__(model)
        self.constants = KeptConstants()
        # One for all captures: only one of them runs at a time, and nobody reads what a step has left there.
        self.pool = torch.cuda.graph_pool_handle()

    def stream(self):
        return torch.cuda.current_stream().cuda_stream

    def capture(self, hook):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side), self.constants:
            for _ in range(2):  # lazily loaded modules and workspaces, and constants
                self.model.step()
                self.rewind()
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        failure = None
        self.active = hook
        try:
            with torch.cuda.graph(graph, pool=self.pool, capture_error_mode="thread_local"), self.constants:
                try:
                    hook(self.stream(), models.BEGIN)
                    self.model.step()
                    hook(self.stream(), models.END)
                except Exception as error:
                    failure = error  # what ending a spoilt capture says of it comes after the reason
                    raise
        except errors.CheckFailed:
            raise
        except Exception as error:
            if isinstance(failure, errors.CheckFailed):
                raise failure from error
            raise errors.CheckFailed(f"the forward cannot be captured in a graph: {operation_of(failure or error)}") from error
        finally:
            self.active = None
        return graph

    def replay(self, step):
        self.rewind()
        step.replay()
        torch.cuda.synchronize()


def operation_of(error):
    """Which line of the model an exception of its forward comes from, and what it says."""
    trace = traceback.extract_tb(error.__traceback__)
    ours = os.path.dirname(os.path.abspath(__file__))
    frames = [f for f in trace if f"{os.sep}torch{os.sep}" not in f.filename and os.path.dirname(os.path.abspath(f.filename)) != ours]
    where = frames[-1] if frames else trace[-1]
    return f"`{where.line}` ({os.path.basename(where.filename)}:{where.lineno}): {errors.said(error)}"

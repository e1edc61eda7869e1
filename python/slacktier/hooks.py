"""Hooks on a torch model that tell an attachment when a step begins, comes to each layer, and ends.

Engines run a forward several times before they capture it, with the same hooks in place: on a GPU only what is captured counts.
"""

from slacktier import errors


class TorchRuntime:
    """What hooks ask of torch. A model without a GPU runs its hooks where it is."""

    def __init__(self, device=None):
        self.device = device

    def stream(self):
        if self.device is None:
            return 0
        import torch

        return torch.cuda.current_stream().cuda_stream

    def counts(self):
        """Whether what is queued now is (part of) a step to be measured."""
        if self.device is None:
            return True
        import torch

        return torch.cuda.is_current_stream_capturing()


def batch_of(arguments, keywords):
    """(sequences, whether it is a decode-only step) of a forward, by its first tensor: token ids (sequences) or (sequences, tokens), or
    hidden states, which have one dimension more."""
    for value in [*keywords.values(), *arguments]:
        shape = getattr(value, "shape", None)
        if shape is not None and len(shape) > 0:
            if len(shape) > 1 and getattr(value, "is_floating_point", bool)():
                shape = shape[:-1]
            return int(shape[0]), len(shape) < 2 or int(shape[1]) == 1
        if isinstance(value, (list, tuple)):
            return len(value), True
    return 1, True


class LayerHooks:
    """Hooks of one model for one attachment (native: begin, layer, end, queued). step: the module whose call is a step.

    nodes: of each captured batch, how many host functions its graph has; layers + 2, or hooks are missing."""

    def __init__(self, step, layers, attachment, runtime, batch=batch_of):
        self.attachment, self.runtime, self.batch = attachment, runtime, batch
        self.layers = len(layers)
        self.active = False
        self.nodes = {}
        # Keyword arguments are shown to hooks where the module can; torch's can.
        try:
            step.register_forward_pre_hook(self._begin, with_kwargs=True)
        except TypeError:
            step.register_forward_pre_hook(self._begin)
        for k, layer in enumerate(layers):
            layer.register_forward_pre_hook(lambda *_, k=k: self._layer(k))
        step.register_forward_hook(self._end)

    def _begin(self, module, arguments, keywords=None):
        self.active = self.runtime.counts()
        if not self.active:
            return
        self.current, decode = self.batch(arguments, keywords or {})
        self.attachment.begin(self.runtime.stream(), self.current, decode)

    def _layer(self, layer):
        if self.active:
            self.attachment.layer(self.runtime.stream(), layer)

    def _end(self, *_):
        if not self.active:
            return
        self.active = False
        stream = self.runtime.stream()
        self.attachment.end(stream)
        if stream != 0:
            self.nodes[self.current] = self.attachment.queued()
            if self.nodes[self.current] != self.layers + 2:
                raise errors.CheckFailed(
                    f"batch {self.current}: {self.nodes[self.current]} of {self.layers + 2} hooks entered the graph: are layers bypassed "
                    "(two-batch overlap), or was the model compiled before the hooks were there?")

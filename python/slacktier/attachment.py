"""Attaches slacktier-probe to a model that runs in this process."""

import os

from slacktier import errors, hooks


def attach(model, directory=None, rank=0, layers=None, step=None, batch=hooks.batch_of):
    """Hooks `model` (a torch module, before it is captured or compiled) for `slacktier-probe windows --attach DIRECTORY`.

    directory: shared with the probe; default $SLACKTIER_ATTACH. rank: of this process among the tensor-parallel ones. layers: the
    decoder layers; by default found by structure. step: the module whose call is a step; default the model. batch: tells (sequences, decode-only) of a forward's arguments. Returns the hooks;
    their `nodes` says what each captured graph holds."""
    directory = directory or os.environ.get("SLACKTIER_ATTACH")
    if not directory:
        raise errors.UsageError("attach: name a directory that the probe can reach, or set SLACKTIER_ATTACH")
    if layers is None:
        from slacktier.layers import decoder_layers

        layers = decoder_layers(model)
    from slacktier import _native

    runtime = hooks.TorchRuntime(_gpu_of(model))
    attachment = _native.Attachment(directory, rank, len(layers), runtime.device or "cpu")
    return hooks.LayerHooks(step or model, layers, attachment, runtime, batch)


def _gpu_of(model):
    for parameter in getattr(model, "parameters", lambda: ())():
        if parameter.device.type != "cpu":
            import torch

            return f"{'hip' if torch.version.hip else 'cuda'}:{parameter.device.index or 0}"
    return None

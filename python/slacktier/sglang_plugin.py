"""SGLang plug-in (entry point group `sglang.srt.plugins`): attaches the probe where SLACKTIER_ATTACH names a directory.

The model is there and nothing is captured yet when ModelRunner.init_backends begins; SGLang's own --forward-hooks come after the
capture. It calls the model's forward() directly, which runs no hooks of the model itself: a step is the call of the module that has
the layers, from the embedding to the last norm. SGLang only logs what a plug-in raises, so that the probe's time-out is what tells of a plug-in that failed."""

import os
import sys

TARGET = "sglang.srt.model_executor.model_runner.ModelRunner.init_backends"


def decode_batch(arguments, keywords):
    """(padded batch, decode-only) of a forward(input_ids, positions, forward_batch)."""
    batch = keywords.get("forward_batch") or arguments[2]
    return int(batch.batch_size), bool(batch.forward_mode.is_decode())


def attach_runner(runner, *_, **__):
    """Before ModelRunner.init_backends(self)."""
    from slacktier.attachment import attach
    from slacktier.layers import decoder_layers, owner

    if getattr(runner.server_args, "enable_torch_compile", False):
        print("slacktier: --enable-torch-compile compiles the model with its hooks; windows are of the compiled step", file=sys.stderr)
    if getattr(runner.server_args, "enable_two_batch_overlap", False):
        print("slacktier: two-batch overlap bypasses layer calls: hooks will be missing", file=sys.stderr)
    layers = decoder_layers(runner.model)
    runner.slacktier = attach(runner.model, rank=getattr(runner, "tp_rank", 0), layers=layers, step=owner(runner.model, layers),
                              batch=decode_batch)


def register():
    """Called by SGLang in each of its processes."""
    if not os.environ.get("SLACKTIER_ATTACH"):
        return
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    HookRegistry.register(TARGET, attach_runner, HookType.BEFORE)

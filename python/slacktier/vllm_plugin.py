"""vLLM plug-in (entry point group `vllm.general_plugins`): attaches the probe where SLACKTIER_ATTACH names a directory.

vLLM has no registry of hooks: the plug-in wraps GPUModelRunner.load_model, after which the model is there and nothing is captured.
Only what hooks enqueue on the stream survives a capture; run it with --compilation-config '{"mode": 0}', since a compiled model
does not call hooks. Whether a step only decodes is not in a forward's arguments: captured graphs (mode FULL_DECODE_ONLY) are."""

import functools
import os


def token_batch(arguments, keywords):
    """(padded tokens, decode-only) of forward(input_ids, positions, ...): one token a sequence when decoding."""
    tokens = keywords.get("input_ids")
    if tokens is None:
        tokens = arguments[0]
    return int(tokens.shape[0]), True


def wrap(runner_class):
    """Wraps the class's load_model, once."""
    if getattr(runner_class.load_model, "slacktier", False):
        return
    load_model = runner_class.load_model

    @functools.wraps(load_model)
    def loaded(self, *arguments, **keywords):
        from slacktier.attachment import attach

        result = load_model(self, *arguments, **keywords)
        self.slacktier = attach(self.model, rank=getattr(self, "rank", 0), batch=token_batch)
        return result

    loaded.slacktier = True
    runner_class.load_model = loaded


def register():
    """Called by vLLM in each of its processes."""
    if not os.environ.get("SLACKTIER_ATTACH"):
        return
    from vllm.v1.worker.gpu_model_runner import GPUModelRunner

    wrap(GPUModelRunner)

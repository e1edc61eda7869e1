"""Parts of transformers' models as serving engines run them when they decode: attention that reads each key once instead of repeating it
for every query head, one kernel a norm, sliding windows written in place. What they compute is the same (a test shows it); what a step
takes is not, and it is an engine's step whose windows are asked for. --stock leaves all as it is."""

import types

import torch
import torch.nn.functional as F
import transformers

# By the stock implementation, whose masks the replacement takes.
ATTENTION = {"sdpa": "slacktier_bool_mask", "eager": "slacktier_float_mask"}


def grouped_attention(module, query, key, value, attention_mask, dropout=0.0, scaling=None, s_aux=None, softcap=None, **unused):
    """Attention of one token a sequence: query (batch, heads, 1, width); key and value (batch, key heads, keys, width); the mask, bool or
    added, (batch or 1, 1, 1, keys) or nothing; s_aux: sinks (heads), which take part in the softmax and have no value. Returns
    (batch, 1, heads, width) as transformers' attention functions do. Other steps are the stock function's."""
    batch, heads, tokens, width = query.shape
    if tokens != 1 or dropout:
        return _stock(module)(module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, s_aux=s_aux, softcap=softcap, **unused)
    groups = key.shape[1]
    scores = torch.matmul(query.reshape(batch, groups, heads // groups, width), key.transpose(-1, -2))
    scores = scores * (width**-0.5 if scaling is None else scaling)
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    if attention_mask is not None:
        mask = attention_mask[..., : key.shape[2]]
        scores = torch.where(mask, scores, torch.finfo(scores.dtype).min) if mask.dtype == torch.bool else scores + mask
    if s_aux is not None:
        sinks = s_aux.to(scores.dtype).reshape(1, groups, heads // groups, 1).expand(batch, -1, -1, -1)
        scores = torch.cat([scores, sinks], dim=-1)
    weights = torch.softmax(scores, dim=-1, dtype=torch.float32).to(value.dtype)
    if s_aux is not None:
        weights = weights[..., :-1]
    return torch.matmul(weights, value).reshape(batch, 1, heads, value.shape[-1]), None


def _stock(module):
    import sys

    if getattr(module.config, "_attn_implementation", "") == ATTENTION["sdpa"]:
        return transformers.AttentionInterface()["sdpa"]
    return sys.modules[type(module).__module__].eager_attention_forward


def _attention(model):
    from transformers.masking_utils import AttentionMaskInterface

    masks = AttentionMaskInterface()
    for stock, name in ATTENTION.items():
        transformers.AttentionInterface.register(name, grouped_attention)
        AttentionMaskInterface.register(name, masks[stock])
    name = ATTENTION.get(model.config._attn_implementation)
    if name is None:
        return False
    try:
        model.set_attn_implementation(name)
    except (ValueError, ImportError):
        return False
    return model.config._attn_implementation == name


def _norm(module):
    """Replaces the forward of a root-mean-square norm by one kernel, where a trial shows that it is the plain kind."""
    eps = getattr(module, "eps", getattr(module, "variance_epsilon", None))
    weight = getattr(module, "weight", None)
    if not isinstance(eps, float) or (weight is not None and weight.dim() != 1) or weight is None and list(module.parameters()):
        return False
    if weight is None:
        trial = torch.randn(4, 64, device="cpu")
        if not _close(module(trial), F.rms_norm(trial, (64,), None, eps)):
            return False
        module.forward = types.MethodType(lambda self, x: F.rms_norm(x, (x.shape[-1],), None, eps), module)
        return True
    width, kept = weight.shape[0], weight.detach().clone()
    trial = torch.randn(4, width, device=weight.device, dtype=weight.dtype)
    weight.copy_(torch.rand_like(weight) + 0.5)  # one that tells weight from 1 + weight
    offset = next((offset for offset in (0, 1) if _close(module(trial), F.rms_norm(trial, (width,), offset + weight, eps))), None)
    weight.copy_(kept)
    if offset is None:
        return False
    if offset:
        module.register_buffer("whole_weight", kept + offset, persistent=False)
    scale = "whole_weight" if offset else "weight"
    module.forward = types.MethodType(lambda self, x: F.rms_norm(x, (width,), getattr(self, scale).to(x.dtype), eps), module)
    return True


def _close(given, wanted):
    return given.shape == wanted.shape and torch.allclose(given.float(), wanted.float(), rtol=0.02, atol=0.02)


def prepare(model):
    """Replaces what it knows in the model. Returns a word for each change, for the head of a table."""
    changes = ["grouped attention"] if _attention(model) else []
    with torch.inference_mode():
        norms = [_norm(module) for module in model.modules() if type(module).__name__.endswith("RMSNorm")]
    return [*changes, "fused norms"] if any(norms) else changes


def write_in_place(cache):
    """Makes full sliding windows of a static cache overwrite their oldest key, as a ring does, instead of moving all of them. The order
    of keys means nothing to attention. Good for one step after the window was filled; the probe's caches are put back after each."""
    layers = [layer for layer in cache.layers if type(layer).__name__ == "StaticSlidingWindowLayer"]
    for layer in layers:
        layer.update = types.MethodType(_update, layer)
    return bool(layers)


def _update(self, key_states, value_states, *arguments, **keywords):
    if not self.is_initialized or key_states.shape[-2] != 1 or self.cumulative_length_int < self.max_cache_len:
        return type(self).update(self, key_states, value_states, *arguments, **keywords)
    self.cumulative_length_int += 1
    self.keys[:, :, :1] = key_states
    self.values[:, :, :1] = value_states
    return self.keys, self.values

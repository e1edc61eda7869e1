"""Qwen4-exp: the indexer of its sparse attention looks for the visible keys of each sequence (nonzero), which no capture allows. One
decode step of sequences that are equally long sees all keys that the cache holds, so that every shape is known beforehand."""

import math
import types

import torch


def prepare(model, random_weights):
    indexers = [module for module in model.modules() if type(module).__name__ == "Qwen4ExpTextQSAIndexer"]
    for module in indexers:
        module.forward = types.MethodType(select_of_all, module)
    return ["indexer of fixed shape"] if indexers else []


def select_of_all(self, hidden_states, position_embeddings, attention_mask, past_key_values):
    """What Qwen4ExpTextQSAIndexer.forward gives for one token a sequence when all keys are visible: the mask (batch, 1, 1, keys) of
    those in the best blocks, and of the last ones that fill no block."""
    from transformers.models.qwen4_exp.modeling_qwen4_exp import apply_rotary_pos_emb

    batch, tokens, _ = hidden_states.shape
    if tokens != 1:
        return type(self).forward(self, hidden_states, position_embeddings, attention_mask, past_key_values)
    cos, sin = position_embeddings
    heads = [self.index_n_heads * self.index_head_dim, self.index_kv_heads * self.index_head_dim]
    query, keys = torch.split(self.index_qk_proj(hidden_states), heads, dim=-1)
    query = self.q_layernorm(query.reshape(batch, tokens, -1, self.index_head_dim))
    query = apply_rotary_pos_emb(query, cos=cos[:, -1:], sin=sin[:, -1:], unsqueeze_dim=2)[:, 0]
    if past_key_values is not None:
        keys = past_key_values.update_indexer(keys, self.layer_idx)
    length = keys.shape[1]
    blocks = length // self.compress_ratio
    whole = blocks * self.compress_ratio
    chosen = torch.ones((batch, length), dtype=torch.bool, device=keys.device)
    if blocks > self.block_topk:
        pooled = keys[:, :whole].unflatten(1, (blocks, self.compress_ratio)).float().mean(dim=2).to(keys.dtype)
        starts = slice(0, whole, self.compress_ratio)
        pooled = apply_rotary_pos_emb(self.k_layernorm(pooled).unsqueeze(2), cos=cos[:, starts], sin=sin[:, starts],
                                      unsqueeze_dim=2)[:, :, 0]
        scores = torch.relu(torch.matmul(query.float(), pooled.float().transpose(-1, -2))).sum(dim=1) / math.sqrt(self.index_head_dim)
        best = torch.zeros((batch, blocks), dtype=torch.bool, device=keys.device)
        best.scatter_(1, scores.topk(self.block_topk, dim=1).indices, True)
        chosen[:, :whole] = best.repeat_interleave(self.compress_ratio, dim=1)
    chosen = chosen[:, None, None]
    if attention_mask.is_floating_point():
        return torch.where(chosen, attention_mask.new_zeros(()), torch.finfo(attention_mask.dtype).min)
    return chosen

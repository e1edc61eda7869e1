#!/usr/bin/env python3
"""Row indices of Qwen's PLE against the n-gram embedding of Hugging Face transformers (model type qwen4_exp, 5.17 or newer).

Usage: transformers_hash.py PROGRAM [--devices cpu,cuda:0] [--tokens 1000000] [--seed 1]

PROGRAM is slacktier-tier. Random tokens with many eos, at both ends and in runs, go through the module's own forward() as one
sequence, with the table of rows replaced by one that returns the indices it was asked for; then through `PROGRAM table rows` on each
device. Exit status: 0 all equal, 1 not, 77 without torch or such a transformers.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import types

import numpy as np

# Qwen3.8-Flash-Next as released; built-in table qwen38_ple.
CONFIG = types.SimpleNamespace(
    vocab_size=248320, eos_token_id=248044, ngram_size=3, heads_per_ngram=8, ngram_vocab_size_base=20_000_000,
    make_ngram_vocab_size_divisible_by=128, seed=1234, ple_embed_dim=2560)
PADDED_ROWS = 320_001_536


def skip(why):
    print(f"SKIPPED: {why}")
    sys.exit(77)


def draw_tokens(n, seed):
    rng = np.random.default_rng(seed)
    tokens = rng.integers(0, CONFIG.vocab_size, n, dtype=np.int64)
    # Half of the sequence repeats few tokens, so that equal n-grams occur.
    tokens[n // 2:] = rng.integers(0, 50, n - n // 2)
    tokens[rng.random(n) < 0.05] = CONFIG.eos_token_id
    for at in rng.integers(0, n, 200):  # runs of eos
        tokens[at:at + 3] = CONFIG.eos_token_id
    tokens[0] = tokens[-1] = CONFIG.eos_token_id
    return tokens


def reference_rows(tokens):
    try:
        import torch
        import transformers
        from transformers.models.qwen4_exp import modeling_qwen4_exp as model
    except ImportError as error:
        skip(f"transformers with qwen4_exp and torch are needed: {error}")

    class Indices(torch.nn.Module):
        """Stands for the 100 GB of rows: gives back what it is asked for."""

        def __init__(self, rows, dim):
            super().__init__()
            self.rows, self.dim = rows, dim
            self.weight = torch.nn.Parameter(torch.empty(0), requires_grad=False)

        def forward(self, ids):
            return ids.unsqueeze(-1)

    embedding = model.nn.Embedding
    model.nn.Embedding = Indices
    try:
        module = model.Qwen4ExpTextNGramEmbedding(CONFIG, CONFIG.ple_embed_dim, 1, 0)
    finally:
        model.nn.Embedding = embedding
    print(f"transformers {transformers.__version__}, torch {torch.__version__}; "
          f"multipliers {module.layer_multipliers.tolist()}, {module.ngram_embedding.rows} rows of {module.ngram_embedding.dim}")
    if module.ngram_embedding.rows != PADDED_ROWS:
        sys.exit(f"the module's table has {module.ngram_embedding.rows} rows, ours {PADDED_ROWS}")
    with torch.no_grad():
        return module(torch.from_numpy(tokens).unsqueeze(0), None).squeeze(0).numpy()


def our_rows(program, device, tokens, folder):
    source, target = os.path.join(folder, "tokens.npy"), os.path.join(folder, "rows.npy")
    np.save(source, tokens)
    subprocess.run([program, "table", "rows", "--table", "qwen38_ple", "--tokens", source, "--device", device, "--out", target], check=True)
    return np.load(target)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("--devices", default="cpu,cuda:0")
    parser.add_argument("--tokens", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    tokens = draw_tokens(arguments.tokens, arguments.seed)
    expected = reference_rows(tokens)
    print(f"{len(tokens)} tokens, {int((tokens == CONFIG.eos_token_id).sum())} of them eos; {expected.size} rows, "
          f"{len(np.unique(expected))} different")
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for device in arguments.devices.split(","):
            rows = our_rows(arguments.program, device, tokens, folder)
            if rows.shape != expected.shape:
                sys.exit(f"{device}: shape {rows.shape}, transformers has {expected.shape}")
            different = np.argwhere(rows != expected)
            wrong += len(different)
            print(f"{device}: {rows.size - len(different)} of {rows.size} rows equal transformers'")
            if len(different):
                token, column = different[0]
                print(f"  first: token {token}, column {column}: {rows[token, column]}, transformers has {expected[token, column]}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

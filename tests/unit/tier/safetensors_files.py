"""The safetensors package's side of the checkpoint test: checks the file that we wrote, and writes checkpoints for us to read.

Writes expected.json: for each table its spec, its checkpoint and the records of each layer. Exits 77 without the package.
"""

import ctypes
import json
import pathlib
import random
import struct
import sys

try:
    import safetensors
except ImportError:
    sys.exit(77)

folder = pathlib.Path(sys.argv[1])
random.seed(11)


def save(path, tensors):
    """tensors: name -> (dtype, shape, bytes). Through whichever of its serialisers this version of the package has."""
    path.parent.mkdir(exist_ok=True)
    if hasattr(safetensors, "TensorSpec"):
        keep = {name: ctypes.create_string_buffer(data, max(len(data), 1)) for name, (_, _, data) in tensors.items()}
        specs = {name: safetensors.TensorSpec(dtype=dtype, shape=shape, data_ptr=ctypes.addressof(keep[name]), data_len=len(data))
                 for name, (dtype, shape, data) in tensors.items()}
    else:
        specs = {name: {"dtype": dtype, "shape": shape, "data": data} for name, (dtype, shape, data) in tensors.items()}
    safetensors.serialize_file(specs, str(path), {"format": "pt"})


def index(path, files):
    weight_map = {name: file for file, names in files.items() for name in names}
    (path / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}, indent=2))


ours = dict(safetensors.deserialize((folder / "ours.safetensors").read_bytes()))
assert ours["a"]["dtype"] == "BF16" and ours["a"]["shape"] == [3, 4] and len(ours["a"]["data"]) == 24, ours["a"]
assert ours["b"]["dtype"] == "F8_E4M3" and len(ours["b"]["data"]) == 64, ours["b"]

expected = []


def expect(spec, path, layers):
    expected.append({"spec": spec, "path": path, "layers": [[record.hex() for record in layer] for layer in layers]})


# Engram: FP8 weights and E8M0 scales, each layer in a file of its own, behind tensors of other models' parts.
values, blocks = 64, 2
primes = {1: [97, 101], 3: [103, 107]}
layers, files = [], {}
for layer, heads in primes.items():
    rows = sum(heads)
    weight, scale = random.randbytes(rows * values), random.randbytes(rows * blocks)
    name = f"model-{layer}.safetensors"
    tensors = {"q": ("uint8", [5], b"12345"), f"layers.{layer}.engram.embed.weight": ("float8_e4m3fn", [rows, values], weight),
               f"layers.{layer}.engram.embed.scale": ("float8_e8m0fnu", [rows, blocks], scale)}
    save(folder / "engram" / name, tensors)
    files[name] = [n for n in tensors if n != "q"]
    layers.append([weight[r * values:(r + 1) * values] + scale[r * blocks:(r + 1) * blocks] for r in range(rows)])
index(folder / "engram", files)
expect({"name": "py_engram", "hash": "engram", "record": "fp8_e4m3_block32", "engram_layer_ids": [1, 3], "engram_max_ngram_size": 2,
        "engram_n_heads": 2, "engram_head_dim": values, "engram_vocab_size": 97, "engram_pad_token_id": 0, "vocab_size": 60,
        "compressed_vocab_size": 50, "seed": 0,
        "rows": {"weight": "layers.{layer}.engram.embed.weight", "scale": "layers.{layer}.engram.embed.scale"}}, "engram", layers)

# Gemma: one wide BF16 row a token, split by columns, in a single file.
width, depth, rows = 32, 5, 77
wide = random.randbytes(rows * depth * width * 2)
save(folder / "gemma" / "model.safetensors", {"norm": ("float32", [3], bytes(12)),
                                             "model.language_model.embed_tokens_per_layer.weight": ("bfloat16", [rows, depth * width], wide)})
row = depth * width * 2
expect({"name": "py_gemma", "hash": "token_id", "record": "bf16", "num_hidden_layers": depth, "hidden_size_per_layer_input": width,
        "vocab_size_per_layer_input": rows, "vocab_size": rows + 3,
        "rows": {"weight": "model.language_model.embed_tokens_per_layer.weight", "column_split": True}}, "gemma/model.safetensors",
       [[wide[r * row + k * width * 2:r * row + (k + 1) * width * 2] for r in range(rows)] for k in range(depth)])

# LongCat: a BF16 tensor for each head; a folder without an index.
heads = [31 * 3 + 1 + 2 * i for i in range(2)]
parts = [random.randbytes(n * 64) for n in heads]
for i, part in enumerate(parts):
    save(folder / "longcat" / f"{i}.safetensors", {f"model.ngram_embeddings.embedders.{i}.weight": ("bfloat16", [heads[i], 32], part)})
expect({"name": "py_longcat", "hash": "polynomial", "record": "bf16", "vocab_size": 31, "ngram_vocab_size_ratio": 3, "emb_neighbor_num": 2,
        "emb_split_num": 2, "hidden_size": 64, "rows": {"weight": "model.ngram_embeddings.embedders.{head}.weight"}}, "longcat",
       [[part[r * 64:(r + 1) * 64] for n, part in zip(heads, parts) for r in range(n)]])

# PLE as FP8 row ranges under one FP32 scale, served as BF16: value * scale in FP32, rounded to nearest even.
scale = struct.unpack("<f", struct.pack("<f", 1.9945416716e-4))[0]


def fp32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def bf16(code):
    sign = -1.0 if code & 128 else 1.0
    exponent, mantissa = code >> 3 & 15, code & 7
    if exponent == 15 and mantissa == 7:
        return b"\xc0\x7f"
    value = mantissa * 2.0**-9 if exponent == 0 else (8 + mantissa) * 2.0**(exponent - 10)
    bits = struct.unpack("<I", struct.pack("<f", fp32(sign * value * scale)))[0]
    bits += 0x7FFF + (bits >> 16 & 1)
    return struct.pack("<H", bits >> 16)


spec = {"name": "py_ple", "hash": "ple", "record": "bf16", "ple_layer_ids": [2], "ngram_size": 2, "heads_per_ngram": 2, "ple_embed_dim": 64,
        "ngram_vocab_size_base": 50, "make_ngram_vocab_size_divisible_by": 8, "vocab_size": 90, "eos_token_id": 1, "seed": 1,
        "rows": {"weight": "ple.{layer}.shard_{part}.weight", "scale": "ple.{layer}.weight_scale"}}
rows = 112  # the primes 53 and 59
codes = random.randbytes(rows * 32)
tensors, cut = {"ple.1.weight_scale": ("float32", [1], struct.pack("<f", scale))}, [0, 40, 41, 112]
for part in range(3):
    tensors[f"ple.1.shard_{part}.weight"] = ("float8_e4m3fn", [cut[part + 1] - cut[part], 32], codes[cut[part] * 32:cut[part + 1] * 32])
save(folder / "ple" / "model.safetensors", tensors)
expect(spec, "ple", [[b"".join(bf16(code) for code in codes[r * 32:(r + 1) * 32]) for r in range(rows)]])

(folder / "expected.json").write_text(json.dumps(expected))

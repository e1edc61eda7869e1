// What a lookup table is: its layers, rows, record format and the hash that turns tokens into rows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace slacktier {

enum class RecordFormat {
  fp8_e4m3_block32,  // n E4M3FN bytes, then n/32 E8M0 scales: value * 2^(scale - 127)
  bf16,              // n little-endian bfloat16 values
};

// One layer's table. Rows of all heads lie one head after another: column c (head c of rows_per_token) owns the global
// rows [head_offset[c], head_offset[c + 1]).
struct LayerTable {
  int layer = 0;                           // model layer that reads it, counted from 0
  std::vector<std::uint64_t> head_offset;  // rows_per_token + 1 entries; the last is the sum of all heads' rows
  std::uint64_t rows = 0;                  // head_offset.back(), or more where the model pads the table
  std::vector<std::uint64_t> multipliers;  // one per n-gram position, current token first; empty where none are drawn
  std::uint64_t first_value = 0;           // of a record within the model's own wider row, where that is split by columns
};

// Where a safetensors checkpoint holds the rows (tier/rows.hpp). Names are templates: {layer} is the model layer; {head} a
// column (each head's rows are a tensor of their own); {part} counts from 0 while there are tensors (one row range after the
// other). Of several names the first that the checkpoint has counts. No part of the fingerprint: it names no other row.
struct RowTensors {
  std::vector<std::string> weight;  // [rows, row_values], or wider where column_split
  std::vector<std::string> scale;   // of FP8 weights; see tier/rows.hpp for its forms
  bool column_split = false;        // a row holds all layers; a layer's record begins at its first_value
};

struct TableSpec {
  std::string name;  // of a built-in table, or the name in a JSON file
  std::string hash;  // hash family, see tier/hash.hpp
  RecordFormat format = RecordFormat::fp8_e4m3_block32;
  std::uint32_t row_values = 0;      // values of one record
  std::uint32_t row_bytes = 0;       // bytes of one record
  int max_ngram = 0;                 // tokens that a row depends on, the current one included
  std::uint32_t vocabulary = 0;      // ids that the hash takes: [0, vocabulary), after token compression if there is one
  std::uint32_t raw_vocabulary = 0;  // the tokenizer's ids
  std::int64_t pad = -1;             // id that stands for look-backs before the start
  std::int64_t segment_end = -1;     // id that look-backs never cross (eos of PLE); -1: none
  std::vector<int> order;            // n-gram order of each column (rows_per_token entries)
  std::vector<LayerTable> layers;    // in depth order
  RowTensors tensors;                // empty: not said

  std::uint32_t rows_per_token() const { return static_cast<std::uint32_t>(order.size()); }
  // Index in `layers` of the model's layer; throws UsageError naming the layers there are.
  std::size_t layer_index(int layer) const;
  // Hash of all of the above, as 16 hexadecimal digits: what an image or a placement names to say which table it holds.
  std::string fingerprint() const;
};

// A built-in spec by name, or a spec from a JSON file (a path that ends in ".json"): geometry in the same words as the
// models' configs; multipliers, primes and moduli are derived. Throws UsageError naming file, field and fix; unknown,
// missing and repeated fields are errors. All tables have
//   name, hash (a family of tier/hash.hpp), record ("fp8_e4m3_block32" or "bf16"), vocab_size (the tokenizer's ids);
//   optional: rows (where a checkpoint holds them: {"weight": NAME or [NAMES], "scale": ..., "column_split": true}, see
//   RowTensors)
// and, in units of ids, values, heads and rows:
//   engram  engram_layer_ids (from 0), engram_max_ngram_size (orders 2 to this), engram_n_heads (per order),
//           engram_head_dim (values of a row), engram_vocab_size (rows that a head's prime is at least; one number or one
//           per order), compressed_vocab_size (classes after token compression), engram_pad_token_id (its class), seed;
//           optional: engram_num_embeddings (rows per layer, checked against the derived ones)
//   ple     ple_layer_ids (from 1, as the model counts them), ngram_size, heads_per_ngram, ple_embed_dim (values of all
//   heads
//           together), ngram_vocab_size_base, make_ngram_vocab_size_divisible_by (rows are padded to it), eos_token_id, seed
//   token_id    num_hidden_layers, hidden_size_per_layer_input (values a layer), vocab_size_per_layer_input (rows);
//   optional:
//           layers_per_column_group (1; layers whose columns are one record, read before the first of them)
//   polynomial  ngram_vocab_size_ratio, emb_neighbor_num (orders 2 to this), emb_split_num (heads per order), hidden_size
//           (values of all heads together); optional: eos_token_id
// A layer's rows must number less than 2^32: row indices are 32 bits wide.
TableSpec load_table_spec(const std::string& name_or_path);
std::vector<std::string> built_in_tables();

// A table's JSON file from a model's own config.json: the fields of the model's hash family under the config's names, and
// the names of its checkpoint's tensors. Looks inside text_config first. `name`: of the table, empty: the model's type.
// `hash`: the family, empty: the one whose fields are there. Throws UsageError naming the file and what was looked for: a
// model without such a table, a field that is missing or of no use.
struct DerivedSpec {
  std::string text;                // what load_table_spec reads
  std::vector<std::string> notes;  // what the config does not say and had to be assumed
};
DerivedSpec table_spec_from_config(const std::string& config_path, const std::string& name = {},
                                   const std::string& hash = {});

}  // namespace slacktier

// A hash family: how its tables are described in JSON, and in models' own configs, and how its tokens become rows. Adding
// one means writing one file with a HashFamily and adding its line to families.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tier/hash.hpp"
#include "tier/table/fields.hpp"
#include "tier/table/model_config.hpp"

namespace slacktier {

// Fields of a table's JSON file in the order in which they are written, and what had to be assumed.
struct SpecDraft {
  nlohmann::ordered_json fields;
  std::vector<std::string> notes;
};

struct HashFamily {
  std::string_view name;
  // Fills everything of the spec but name, hash and tensors, which are read already.
  void (*read)(SpecFields& fields, TableSpec& spec);
  std::unique_ptr<RowHash> (*make)(const TableSpec& spec);
  // Fields of a model's config.json any of which tells that the model has such a table (the second may be empty), and what
  // turns that config into the fields that `read` takes, "rows" included. Null: models of this family have no such config.
  std::array<std::string_view, 2> config_keys{};
  void (*from_config)(const ModelConfig& config, SpecDraft& draft) = nullptr;
};

// Throws UsageError for an unknown name, listing the known ones.
const HashFamily& hash_family(const std::string& name);
std::vector<const HashFamily*> all_hash_families();
// Adds a family for this process (hash_families() lists it, specs may name it). Throws UsageError for a name that is taken.
// Not while other threads look families up.
void register_hash_family(const HashFamily& family);

// The hash that Engram and PLE share: multiply, xor, and one remainder per head. See ngram.cpp.
std::unique_ptr<RowHash> make_ngram_hash(const TableSpec& spec);

// What both derive alike from a vocabulary of `classes` ids: half the range of multipliers that keeps products below 2^63.
std::uint64_t multiplier_half(std::uint64_t classes);

// Adds a head's rows to `table`; throws UsageError naming `key` when the table outgrows 32-bit row indices.
void append_head(const SpecFields& fields, const std::string& key, LayerTable& table, std::uint64_t rows);

}  // namespace slacktier

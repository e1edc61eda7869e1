// A hash family: how its tables are described in JSON and how its tokens become rows. Adding one means writing one file with
// a HashFamily and adding its line to families.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "tier/hash.hpp"
#include "tier/table/fields.hpp"

namespace slacktier {

struct HashFamily {
  std::string_view name;
  // Fills everything of the spec but name and hash, which are read already.
  void (*read)(SpecFields& fields, TableSpec& spec);
  std::unique_ptr<RowHash> (*make)(const TableSpec& spec);
};

extern const HashFamily engram_family;
extern const HashFamily ple_family;

// Throws UsageError for an unknown name, listing the known ones.
const HashFamily& hash_family(const std::string& name);

// The hash that Engram and PLE share: multiply, xor, and one remainder per head. See ngram.cpp.
std::unique_ptr<RowHash> make_ngram_hash(const TableSpec& spec);

// What both derive alike from a vocabulary of `classes` ids: half the range of multipliers that keeps products below 2^63.
std::uint64_t multiplier_half(std::uint64_t classes);

// Adds a head's rows to `table`; throws UsageError naming `key` when the table outgrows 32-bit row indices.
void append_head(const SpecFields& fields, const std::string& key, LayerTable& table, std::uint64_t rows);

}  // namespace slacktier

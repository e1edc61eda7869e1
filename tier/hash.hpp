// Tokens to row indices, one class per hash family.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tier/table.hpp"

namespace slacktier {

// Raw tokenizer ids to the ids that the hash takes. Identity unless the model compresses its vocabulary.
class TokenMap {
 public:
  TokenMap() = default;  // identity
  // Little-endian int32 per raw id; throws UsageError when the size is not 4 * spec.raw_vocabulary bytes or an entry is
  // not in [0, spec.vocabulary).
  static TokenMap load(const std::string& path, const TableSpec& spec);
  std::uint32_t operator()(std::uint32_t raw) const { return map_.empty() ? raw : map_[raw]; }
  bool identity() const { return map_.empty(); }
  std::size_t size() const { return map_.size(); }

 private:
  std::vector<std::uint32_t> map_;
};

// Fills `context` ([tokens][max_ngram], current token first) for positions [first, first + tokens) of one sequence of hash
// ids. Look-backs before the start give spec.pad; look-backs never cross spec.segment_end (its own position sees itself).
void gather_context(const TableSpec& spec, std::span<const std::uint32_t> sequence, std::size_t first, std::size_t tokens,
                    std::uint32_t* context);

// A hash as a kernel computes it on a device that cannot call a RowHash.
struct KernelHash {
  std::string kernel;                 // takes HashArgs (tier/gather.hpp); empty: this hash has none
  std::vector<std::byte> parameters;  // what HashArgs::parameters points to, 8-byte aligned
};

class RowHash {
 public:
  virtual ~RowHash() = default;
  // Row indices of one layer: context is [tokens][max_ngram] hash ids as gather_context gives them, rows is
  // [tokens][rows_per_token] global rows of that layer's table. Ids must be below spec.vocabulary. Allocates nothing.
  virtual void rows(std::size_t layer_index, const std::uint32_t* context, std::size_t tokens,
                    std::uint32_t* rows) const = 0;
  virtual KernelHash for_kernels() const { return {}; }
};

// The hash of a spec; throws UsageError for a family that is not there, listing those that are.
std::unique_ptr<RowHash> make_hash(const TableSpec& spec);
std::vector<std::string> hash_families();

}  // namespace slacktier

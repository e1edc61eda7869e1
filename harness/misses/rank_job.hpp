// One layer's cache on one rank: takes the workload's steps as they come, follows LRU through all capacities, and records
// the rows where other policies are to be replayed over them. Private to harness.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "harness/interleave.hpp"
#include "harness/misses.hpp"
#include "harness/misses/meter.hpp"
#include "harness/misses/miniature.hpp"
#include "harness/misses/pieces.hpp"
#include "harness/row_counts.hpp"
#include "harness/stack_distances.hpp"

namespace slacktier {

// A step with the rows of one layer: [tokens][columns] of its decode slots and of its prefills.
struct HashedStep {
  const StepTokens* tokens = nullptr;
  std::span<const std::uint32_t> decode_rows, prefill_rows;
  bool counted = false;
};

class RankJob {
 public:
  // Keeps references to options and spec. `record`: rows are kept for replay().
  RankJob(const MissesOptions& options, const TableSpec& spec, std::size_t layer_index, std::uint32_t rank, bool curve,
          bool record);
  void step(const HashedStep& step);
  // Rows of the training sessions, [tokens][columns].
  void train(std::span<const std::uint32_t> rows);
  // After the last step: rows get dense ids.
  void end_steps();

  std::size_t layer_index() const { return layer_index_; }
  std::uint32_t rank() const { return rank_; }
  std::uint64_t recorded_bytes() const { return rows_.size() * 4 + pieces_.size() * sizeof(StoredPiece); }
  std::uint64_t lookups() const { return lookups_; }
  const Asked& asked() const { return asked_; }
  RankMisses curve() const;                      // of LRU
  std::optional<double> sampling_error() const;  // of that curve
  MissPoint replay(const std::string& policy, std::uint64_t capacity) const;
  RankMisses frame() const;  // all but the curve

 private:
  struct StoredPiece {
    std::uint32_t rows;
    bool decode, counted, unit_end;
  };
  void take(const Piece& given, std::uint32_t slot, bool counted);
  void follow_all(const Piece& piece, std::uint32_t slot, bool counted);
  void end_unit(bool counted);
  std::uint64_t scaled(std::uint64_t capacity) const;

  const MissesOptions& options_;
  std::size_t layer_index_;
  std::uint32_t rank_;
  Shard shard_;
  std::uint32_t rows_per_page_;
  PieceMaker maker_;
  bool record_, trains_ = false;
  std::size_t columns_, chunk_;
  Asked asked_;
  std::uint64_t lookups_ = 0;

  // LRU: capacities followed one by one, and all others by stack distances. meter_ also counts for the capacity of no rows.
  std::vector<std::unique_ptr<Miniature>> miniatures_;  // of each capacity, or none
  std::unique_ptr<Meter> meter_;
  PieceSample sample_;
  std::vector<StackDistances> stacks_;     // one, or one a session slot
  std::vector<std::uint64_t> session_of_;  // whose rows a slot's stack holds
  std::vector<std::uint64_t> limits_;      // capacities as distances are compared with
  std::vector<std::uint32_t> distances_;
  std::vector<std::uint8_t> first_hit_;

  std::vector<std::uint32_t> rows_;  // recorded: local rows, dense ids after end_steps
  std::vector<StoredPiece> pieces_;
  std::vector<std::uint32_t> row_of_;  // of each dense id
  std::vector<std::uint8_t> order_of_;
  mutable RowCounts counts_;
  std::vector<std::uint32_t> hottest_;  // dense ids by falling frequency in the training data
};

}  // namespace slacktier

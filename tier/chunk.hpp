// A prefill chunk: thousands of tokens at once through one layer's directory, their pages read in waves of the page pool.
//
// Waves follow pages, not tokens: all lookups of a page are in the wave that reads it, so a page that a chunk wants is read
// once however often and however far apart it is wanted, and with however small a cache.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tier/step.hpp"

namespace slacktier {

class ChunkPlan {
 public:
  // Room for chunks of up to max_lookups lookups (tokens * columns). The lists that the gather reads are written to
  // `descriptors` and `at`, [max_lookups] each.
  ChunkPlan(std::uint32_t max_lookups, Descriptor* descriptors, std::uint32_t* at);

  // What one gather delivers: descriptors()[first, last) go to output rows at()[first, last).
  struct List {
    std::uint32_t first = 0, last = 0;
  };
  // Lookups that wait for no page: hits, host-table rows, zeros.
  List ready() const { return {0, ready_}; }
  std::size_t waves() const { return waves_.size(); }
  List list(std::size_t wave) const { return waves_[wave].list; }
  // Pages of a wave, each with its buffer. Waves w and w + 2 use the same buffers: w + 2 may be read once w was gathered.
  std::span<const PageRead> reads(std::size_t wave) const {
    return std::span(reads_).subspan(waves_[wave].first_read, waves_[wave].reads);
  }
  // No two buffers are free: nothing can be read, every wave must be given up.
  bool starved() const { return starved_; }
  const LayerCounts& counts() const { return counts_; }
  // Descriptor of every lookup of the chunk as the checker wants them: zero where nothing is delivered.
  std::span<const Descriptor> by_lookup() const { return by_lookup_; }

 private:
  friend class LayerCore;
  struct Wave {
    std::uint32_t first_read = 0, reads = 0, first_miss = 0, misses = 0;
    List list;
  };
  struct Wanted {  // a miss and its page
    std::uint32_t page = 0, miss = 0;
  };
  // faults[i] of the wave's reads; empty: all failed.
  void fail_reads(std::size_t wave, std::span<const PageFault> faults);

  Descriptor* descriptors_;
  std::uint32_t* at_;
  std::uint32_t ready_ = 0;
  bool starved_ = false;
  std::vector<Descriptor> by_lookup_;
  std::vector<std::uint32_t> owned_rows_, owned_at_, skipped_at_;
  std::vector<Miss> misses_;
  std::vector<Reuse> reuses_;
  std::vector<Wanted> wanted_;              // by page
  std::vector<std::uint32_t> wanted_read_;  // of wanted_: index into reads_
  std::vector<std::uint32_t> first_reuse_;  // reuses of miss m are reuses_[first_reuse_[m], first_reuse_[m + 1])
  std::vector<std::uint32_t> list_read_;    // of each list entry that waits for a page: its read
  std::vector<std::uint8_t> bad_;           // of each miss
  std::vector<PageRead> reads_;
  std::vector<Wave> waves_;
  LayerCounts counts_;
};

}  // namespace slacktier

// The directory of one layer and rank: which rows the cache holds, in which slots, and which to replace.
//
// One u32 per row of the shard, so that a lookup is one random read: 0 = absent, slot + 1 = cached, top bit = requested in
// this step and on its way (the rest indexes the step's misses), the bit below = hit in this step. What a replacement policy
// knows of its slots is the policy's own, small and dense; the row of each slot is kept for eviction.
//
// A row enters the directory only when its page has arrived (settle), so a failed page leaves nothing to take back.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "platforms/memory.hpp"
#include "tier/descriptor.hpp"

namespace slacktier {

// A row that this step must read: its local row, the slot that will hold it (no_slot: delivered without fill), and the
// position of the first lookup that asked for it.
struct Miss {
  std::uint32_t row = 0;
  std::uint32_t slot = no_slot;
  std::uint32_t lookup = 0;
};

// A later lookup of a row that is already a miss of this step.
struct Reuse {
  std::uint32_t lookup = 0;
  std::uint32_t miss = 0;
};

struct ResolveCounts {
  std::uint32_t hits = 0, reused = 0, misses = 0, evictions = 0;
};

class Directory {
 public:
  // `policy` is a name of directory_policies(); rows < 2^31; slots above `rows` are cut to `rows` (a cache larger than the
  // table holds the whole table). `reserved` is the most slots that resize() may ask for; below `slots` it means `slots`.
  // Throws UsageError for an unknown policy or more than max_slots slots, EnvironmentError when memory is refused.
  static std::unique_ptr<Directory> make(const std::string& policy, std::uint64_t rows, std::uint64_t slots,
                                         std::uint64_t reserved = 0);
  virtual ~Directory() = default;

  // Begins a step: slots touched from here on are not evicted before the next begin_step.
  virtual void begin_step() = 0;
  // Ends it: what the policy may learn late of the step's hits, off the critical path. begin_step does it where this was
  // left out.
  virtual void end_step() = 0;

  // Resolves lookups[i] = local row (all < rows) for the positions at[i] of `descriptors`. Hits are written there; misses
  // and reuses are appended to the lists (capacity reserved by the caller: nothing is allocated), their descriptors left to
  // the caller. With reuse off, every lookup of an absent row is a miss of its own (only the first gets a slot).
  virtual ResolveCounts resolve(std::span<const std::uint32_t> lookups, std::span<const std::uint32_t> at,
                                std::span<Descriptor> descriptors, std::vector<Miss>& misses, std::vector<Reuse>& reuses,
                                bool reuse = true) = 0;

  // Ends the misses of a resolve: with ok, the row enters the directory with its slot; without, its slot is free again.
  virtual void settle(const Miss& miss, bool ok) = 0;

  // Rows enter as if they had been read, in this order, into empty slots, the lowest first, until the list or the empty
  // slots end; those held already are passed over. The one way into a cache of policy "static", whose rows come hottest
  // first. Their slots are appended to `filled`. Between steps only.
  virtual void hold(std::span<const std::uint32_t> rows, std::vector<std::uint32_t>& filled) = 0;

  // Changes the slots in use, between steps only. Rows stay in their slots: growing keeps all, shrinking gives up those that
  // the policy would evict first, whose slots are retired until the cache grows again. Throws UsageError above reserved().
  virtual void resize(std::uint64_t slots) = 0;

  // Row of a slot, or UINT32_MAX for an empty one; slot of a row, or no_slot. Slots are below reserved().
  virtual std::uint32_t row_of(std::uint32_t slot) const = 0;
  virtual std::uint32_t slot_of(std::uint32_t row) const = 0;

  std::uint64_t rows() const { return rows_; }
  std::uint32_t slots() const { return slots_; }        // rows that the cache may hold now
  std::uint32_t reserved() const { return reserved_; }  // the most it may be resized to: slots are numbered below this
  virtual std::uint32_t occupied() const = 0;
  // Host bytes at full size: the row map, the slots' rows and the policy's own.
  virtual std::size_t bytes() const = 0;

 protected:
  std::uint64_t rows_ = 0;
  std::uint32_t slots_ = 0, reserved_ = 0;
};

std::vector<std::string> directory_policies();

}  // namespace slacktier

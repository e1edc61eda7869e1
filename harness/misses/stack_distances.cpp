#include "harness/stack_distances.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "platforms/error.hpp"

namespace slacktier {

StackDistances::StackDistances() { renumber(0); }

void StackDistances::prefetch(std::uint32_t row) const {
  const std::uint64_t h = hash(row);
  const Part& part = parts_[h >> 56];
  if (!part.entries.empty()) __builtin_prefetch(&part.entries[(h >> 24) & (part.entries.size() - 1)], 1);
}

StackDistances::Entry* StackDistances::find(std::uint32_t row) {
  const std::uint64_t h = hash(row);
  Part& part = parts_[h >> 56];
  if (part.entries.empty()) return nullptr;
  const std::size_t mask = part.entries.size() - 1;
  for (std::size_t i = (h >> 24) & mask;; i = (i + 1) & mask) {
    Entry& entry = part.entries[i];
    if (entry.position == 0) return nullptr;
    if (entry.row == row) return &entry;
  }
}

void StackDistances::insert(std::uint32_t row, std::uint32_t position) {
  const auto place = [](std::vector<Entry>& entries, const Entry& entry) {
    const std::size_t mask = entries.size() - 1;
    std::size_t i = (hash(entry.row) >> 24) & mask;
    while (entries[i].position != 0) i = (i + 1) & mask;
    entries[i] = entry;
  };
  Part& part = parts_[hash(row) >> 56];
  if (4 * (part.used + std::size_t{1}) > 3 * part.entries.size()) {
    std::vector<Entry> larger(std::max<std::size_t>(8, 2 * part.entries.size()), Entry{0, 0});
    for (const Entry& entry : part.entries)
      if (entry.position != 0) place(larger, entry);
    part.entries = std::move(larger);
  }
  place(part.entries, {row, position});
  ++part.used;
  ++distinct_;
}

std::uint32_t StackDistances::up_to(std::uint32_t position) const {
  const std::size_t word = position / 64, block = word / block_words, group = block / group_blocks;
  std::uint32_t count = 0;
  for (std::size_t g = group; g > 0; g &= g - 1) count += groups_[g];
  for (std::size_t b = group * group_blocks; b < block; ++b) count += blocks_[b];
  for (std::size_t w = block * block_words; w < word; ++w) count += static_cast<std::uint32_t>(std::popcount(words_[w]));
  return count + static_cast<std::uint32_t>(std::popcount(words_[word] << (63 - position % 64)));
}

void StackDistances::count_group(std::size_t group, std::uint32_t change) {
  for (std::size_t g = group + 1; g < groups_.size(); g += g & (~g + 1)) groups_[g] += change;
}

void StackDistances::set(std::uint32_t position) {
  words_[position / 64] |= std::uint64_t{1} << (position % 64);
  ++blocks_[position / (64 * block_words)];
}

void StackDistances::clear(std::uint32_t position) {
  words_[position / 64] &= ~(std::uint64_t{1} << (position % 64));
  --blocks_[position / (64 * block_words)];
  count_group(position / group_bits, ~std::uint32_t{0});
}

// Positions become 1 … distinct; room for as many lookups again three times over, and at least for `room`.
void StackDistances::renumber(std::size_t room) {
  for (Part& part : parts_)
    for (Entry& entry : part.entries)
      if (entry.position != 0) entry.position = up_to(entry.position);
  const std::size_t bits = std::max<std::size_t>({4 * std::size_t{distinct_}, distinct_ + 2 * room, 4096}) + 1;
  const std::size_t groups = (bits + group_bits - 1) / group_bits;
  if (groups * group_bits > UINT32_MAX)
    throw UsageError("more than a billion distinct rows: sample them with --sample, or give fewer layers and ranks");
  // A short axis stays short: a cache of one session counts only the blocks it needs.
  const std::size_t blocks = (bits + 64 * block_words - 1) / (64 * block_words);
  words_.assign(blocks * block_words, 0);
  blocks_.assign(blocks, 0);
  groups_.assign(groups + 1, 0);
  words_.shrink_to_fit();
  blocks_.shrink_to_fit();
  for (std::uint32_t p = 1; p <= distinct_; ++p) set(p);
  for (std::size_t g = 0; g < groups; ++g) {
    std::uint32_t count = 0;
    for (std::size_t b = g * group_blocks; b < std::min(blocks, (g + 1) * group_blocks); ++b) count += blocks_[b];
    count_group(g, count);
  }
  next_ = distinct_ + 1;
}

void StackDistances::step(std::span<const std::uint32_t> rows, std::span<std::uint32_t> distances) {
  if (next_ + rows.size() > words_.size() * 64) renumber(rows.size());
  constexpr std::size_t ahead = 16;
  const std::size_t n = rows.size();
  for (std::size_t i = 0; i < std::min(ahead, n); ++i) prefetch(rows[i]);
  for (std::size_t i = 0; i < n; ++i) {
    if (i + ahead < n) prefetch(rows[i + ahead]);
    const Entry* entry = find(rows[i]);
    distances[i] = entry ? distinct_ - up_to(entry->position) : never;
  }
  std::size_t group = next_ / group_bits;
  std::uint32_t in_group = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t position = next_++;
    if (distances[i] == never) {
      insert(rows[i], position);
    } else {
      Entry* entry = find(rows[i]);
      clear(entry->position);
      entry->position = position;
    }
    set(position);
    if (position / group_bits != group) {
      count_group(group, in_group);
      group = position / group_bits;
      in_group = 0;
    }
    ++in_group;
  }
  count_group(group, in_group);
}

std::size_t StackDistances::bytes() const {
  std::size_t bytes = words_.capacity() * 8 + blocks_.capacity() * 2 + groups_.capacity() * 4 + sizeof(*this);
  for (const Part& part : parts_) bytes += part.entries.capacity() * sizeof(Entry);
  return bytes;
}

}  // namespace slacktier

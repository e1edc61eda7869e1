// A table, or some of its shards, laid out in memory for other nodes: the same pages as in an image, segment after segment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "platforms/memory.hpp"
#include "tier/image.hpp"

namespace slacktier {

// Never changes once it is made. The header's `base` of a segment is its offset in the memory; pages follow one another.
class ServedTable {
 public:
  using ProgressCall = std::function<void(std::uint64_t done, std::uint64_t total)>;  // bytes; may be empty, may throw

  // Pages made from their rows, without a disk: of options shard_map, ranks, only_ranks, layers, page_bytes, max_bytes, seed
  // and rows count. Equal settings give equal pages with an equal nonce, so that readers take a server that was started
  // again for the same one. Throws UsageError, EnvironmentError (memory).
  static ServedTable make(const TableSpec& spec, StageOptions options, const ProgressCall& progress = {});
  // The pages of a staged image, each checked; of these layers and ranks (empty: all). Throws UsageError as
  // read_image_header and for what it does not hold, CheckFailed naming the first bad page, EnvironmentError,
  // std::system_error.
  static ServedTable load(const std::vector<std::string>& disks, const std::vector<int>& layers = {},
                          const std::vector<std::uint32_t>& ranks = {}, const ProgressCall& progress = {});

  const ImageHeader& header() const { return *header_; }
  const std::string& header_text() const { return text_; }  // its JSON
  const std::byte* data() const { return static_cast<const std::byte*>(memory_.data()); }
  std::size_t bytes() const { return memory_.bytes(); }
  // Of one page, by index of the segment.
  const std::byte* page(std::size_t segment, std::uint64_t page) const {
    return data() + header_->segments[segment].base + page * header_->geometry.page_bytes;
  }

 private:
  explicit ServedTable(ImageHeader header);
  std::byte* at(std::size_t segment, std::uint64_t page) { return const_cast<std::byte*>(this->page(segment, page)); }
  void describe();

  std::unique_ptr<ImageHeader> header_;  // its address stays when the table moves
  HostMemory memory_;
  std::string text_;
};

}  // namespace slacktier

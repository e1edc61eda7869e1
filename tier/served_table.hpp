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

// What of a table one memory holds, and where that memory is.
struct ServedPart {
  std::vector<int> layers = {};           // empty: all
  std::vector<std::uint32_t> ranks = {};  // empty: all
  int numa_node = -1;                     // whose memory is preferred; -1: any
};

// The header's segments that are the part's. Throws UsageError for layers and ranks that are not there.
std::vector<ImageSegment> served_segments(const ImageHeader& header, const ServedPart& part);

// Deals a table's segments to `parts` servers, whole ranks in turn, or whole layers where there are fewer ranks. Throws
// UsageError when there are fewer of both.
std::vector<ServedPart> deal_parts(std::span<const ImageSegment> segments, std::size_t parts);

// Never changes once it is made. The header's `base` of a segment is its offset in the memory; pages follow one another.
class ServedTable {
 public:
  using ProgressCall = std::function<void(std::uint64_t done, std::uint64_t total)>;  // bytes; may be empty, may throw

  // Pages made from their rows, without a disk: of options shard_map, ranks, only_ranks, layers, page_bytes, max_bytes, seed
  // and rows count. Equal settings give equal pages with an equal nonce, so that readers take a server that was started
  // again for the same one; those of a part are the same as in the whole. Throws UsageError, EnvironmentError (memory).
  static ServedTable make(const TableSpec& spec, StageOptions options, const ServedPart& part = {},
                          const ProgressCall& progress = {});
  // The pages of a staged image, each checked. Throws UsageError as read_image_header and for what it does not hold,
  // CheckFailed naming the first bad page, EnvironmentError, std::system_error.
  static ServedTable load(const std::vector<std::string>& disks, const ServedPart& part = {},
                          const ProgressCall& progress = {});

  const ImageHeader& header() const { return *header_; }
  const std::string& header_text() const { return text_; }  // its JSON
  const std::byte* data() const { return static_cast<const std::byte*>(memory_.data()); }
  std::size_t bytes() const { return memory_.bytes(); }
  // Where its memory was found to be: "all on NUMA node 1", or why it is not there. Empty: no node was asked for.
  std::string describe_place() const;
  // Of one page, by index of the segment.
  const std::byte* page(std::size_t segment, std::uint64_t page) const {
    return data() + header_->segments[segment].base + page * header_->geometry.page_bytes;
  }

 private:
  ServedTable(ImageHeader header, const ServedPart& part);
  std::byte* at(std::size_t segment, std::uint64_t page) { return const_cast<std::byte*>(this->page(segment, page)); }
  void describe();

  std::unique_ptr<ImageHeader> header_;  // its address stays when the table moves
  HostMemory memory_;
  int numa_node_;
  std::string not_placed_;  // why the system did not take the node
  std::string text_;
};

}  // namespace slacktier

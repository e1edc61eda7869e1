// A layer's shard that is read without pages: packed records of the stored (folded) pages, where the gather reads them
// directly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "platforms/device.hpp"
#include "tier/rows.hpp"
#include "tier/table.hpp"

namespace slacktier {

// Where a resident table lies, named as a layer's source is:
//   dram  host memory of exact size, which a GPU reads over its link (zero-copy)
//   hbm   the device's own memory; on cpu that is host memory, too
//   peer  another GPU's memory, read over NVLink or PCIe
bool is_resident_source(std::string_view source);

class ResidentTable {
 public:
  // Fills the table from its origin with one task per CPU. `rows` is the stored rows; `peer` names the other GPU ("cuda:1")
  // of source "peer". Throws EnvironmentError with the bytes needed when the place has no room, or names why the device
  // cannot reach the peer; UsageError for another source or a peer of another kind.
  ResidentTable(Device& device, const TableSpec& spec, const RowOrigin& origin, std::uint64_t rows,
                const std::string& source = "dram", const std::string& peer = "");
  const std::byte* device_data() const { return static_cast<const std::byte*>(memory_->device()); }
  std::size_t bytes() const { return memory_->bytes(); }
  std::size_t host_bytes() const { return on_host_ ? memory_->bytes() : 0; }
  // "host table, 1.3 GiB", "memory of cuda:1, 1.3 GiB".
  const std::string& describe() const { return description_; }

 private:
  std::unique_ptr<Buffer> memory_;
  bool on_host_ = false;
  std::string description_;
};

}  // namespace slacktier

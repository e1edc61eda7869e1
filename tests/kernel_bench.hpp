// Where kernels are tried: a device, its stream, memory for their arguments, and arguments that several need. Knows no test
// library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "platforms/device.hpp"
#include "tier/descriptor.hpp"
#include "tier/gather.hpp"
#include "tier/table.hpp"

namespace slacktier::testing {

// A device, its stream, and buffers that stay until the end.
class KernelBench {
 public:
  explicit KernelBench(Device& device) : device_(device), stream_(device.create_stream("kernels")) {}

  Stream& stream() { return *stream_; }

  // Device memory with these bytes.
  template <class T>
  T* on_device(const std::vector<T>& content) {
    const auto staged = device_.allocate_host(content.size() * sizeof(T));
    std::memcpy(staged->host(), content.data(), content.size() * sizeof(T));
    buffers_.push_back(device_.allocate_device(content.size() * sizeof(T)));
    stream_->copy(buffers_.back()->device(), staged->host(), content.size() * sizeof(T));
    stream_->synchronize();
    return static_cast<T*>(buffers_.back()->device());
  }

  // Host memory that the device maps, as the device sees it.
  template <class T>
  T* mapped(const std::vector<T>& content) {
    buffers_.push_back(device_.allocate_host(content.size() * sizeof(T)));
    std::memcpy(buffers_.back()->host(), content.data(), content.size() * sizeof(T));
    return static_cast<T*>(buffers_.back()->device());
  }

  template <class T>
  std::vector<T> fetch(const T* from, std::size_t n) {
    const auto staged = device_.allocate_host(n * sizeof(T));
    stream_->copy(staged->host(), from, n * sizeof(T));
    stream_->synchronize();
    const auto* content = static_cast<const T*>(staged->host());
    return {content, content + n};
  }

 protected:
  Device& device_;
  std::unique_ptr<Stream> stream_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
};

// A gather of all 65,536 pairs of value and scale, as hits: row s of the cache holds the values 0 to 255 at scale s. Its
// output, 256 rows of 256 numbers, is the caller's.
inline GatherArgs every_pair(KernelBench& bench, OutputFormat output) {
  TableSpec spec;
  spec.format = RecordFormat::fp8_e4m3_block32;
  spec.row_values = 256;
  spec.row_bytes = 264;
  std::vector<std::byte> values, scales;
  std::vector<Descriptor> descriptors;
  for (std::uint32_t scale = 0; scale < 256; ++scale) {
    for (std::uint32_t value = 0; value < 256; ++value) values.push_back(static_cast<std::byte>(value));
    for (int block = 0; block < 8; ++block) scales.push_back(static_cast<std::byte>(scale));
    descriptors.push_back(Descriptor::hit(scale));
  }
  GatherArgs args;
  args.cache = cache_layout(spec);
  args.cache.values = bench.on_device(values);
  args.cache.scales = bench.on_device(scales);
  args.descriptors = bench.mapped(descriptors);
  args.output = output;
  args.lookups = 256;
  args.row_values = spec.row_values;
  args.row_bytes = spec.row_bytes;
  return args;
}

}  // namespace slacktier::testing

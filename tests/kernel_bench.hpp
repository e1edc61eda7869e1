// Where kernels are tried: a device, its stream, and memory for their arguments. Knows no test library.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

#include "platforms/device.hpp"

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

}  // namespace slacktier::testing

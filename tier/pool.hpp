// The one page pool: pinned pages, allocated once at exact size. Device and sources attach to it; nobody else owns pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "platforms/device.hpp"

namespace slacktier {

class PagePool {
 public:
  // `buffers` pages of `page_bytes` in host memory that `device` maps. Throws what Device::allocate_host throws.
  PagePool(Device& device, std::uint32_t page_bytes, std::uint32_t buffers)
      : page_bytes_(page_bytes), buffers_(buffers), memory_(device.allocate_host(std::size_t{page_bytes} * buffers)) {}

  // Pages in memory that no device maps, for reads whose bytes nobody wants.
  PagePool(std::unique_ptr<Buffer> memory, std::uint32_t page_bytes)
      : page_bytes_(page_bytes),
        buffers_(static_cast<std::uint32_t>(memory->bytes() / page_bytes)),
        memory_(std::move(memory)) {}

  std::byte* page(std::uint32_t buffer) const {
    return static_cast<std::byte*>(memory_->host()) + std::size_t{page_bytes_} * buffer;
  }
  std::byte* base() const { return static_cast<std::byte*>(memory_->host()); }
  void* device_base() const { return memory_->device(); }
  std::size_t bytes() const { return memory_->bytes(); }
  std::uint32_t page_bytes() const { return page_bytes_; }
  std::uint32_t buffers() const { return buffers_; }

 private:
  std::uint32_t page_bytes_, buffers_;
  std::unique_ptr<Buffer> memory_;
};

}  // namespace slacktier

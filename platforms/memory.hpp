// Anonymous host memory of exact size.
#pragma once

#include <cstddef>
#include <cstdint>

namespace slacktier {

// Zero pages mapped on demand, rounded up to 4 KiB, huge pages advised when `huge` (they are used where the system grants
// them). Movable, unmapped when destroyed. Throws EnvironmentError naming the size when the system refuses it.
class HostMemory {
 public:
  HostMemory() = default;
  explicit HostMemory(std::size_t bytes, bool huge = true);
  HostMemory(HostMemory&& other) noexcept;
  HostMemory& operator=(HostMemory&& other) noexcept;
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;
  ~HostMemory();

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace slacktier

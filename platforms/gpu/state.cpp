#include "platforms/gpu/state.hpp"

#include <cstdint>

#include <fmt/format.h>

#include "platforms/error.hpp"

namespace slacktier::gpu {

void DeviceState::enter() const { check(rt::SetDevice(index), "choosing the device"); }

void DeviceState::check(rt::Error error, const std::string& what) const {
  if (error == rt::success) return;
  rt::last_error();
  throw DeviceError(fmt::format("{} ({}), {}: {}", name, product, what, rt::text(error)));
}

void* DeviceState::mapped(const void* host, std::size_t bytes, const char* what) {
  const auto at = reinterpret_cast<std::uintptr_t>(host);
  const std::lock_guard lock(mutex);
  auto range = host_ranges.upper_bound(at);
  if (range != host_ranges.begin() && at + bytes <= (--range)->second.end)
    return const_cast<std::byte*>(static_cast<const std::byte*>(host) + range->second.to_device);
  throw UsageError(fmt::format("{}: {} must lie in memory of allocate_host", name, what));
}

}  // namespace slacktier::gpu

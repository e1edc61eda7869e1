#include "platforms/gpu/state.hpp"

#include <charconv>
#include <cstdint>

#include <fmt/format.h>

#include "platforms/error.hpp"

namespace slacktier::gpu {

int parse_index(std::string_view index) {
  int value = -1;
  const char* const end = index.data() + index.size();
  const auto [stop, error] = std::from_chars(index.data(), end, value);
  if (error != std::errc() || stop != end || value < 0)
    throw UsageError(
        fmt::format("unknown device '{}:{}': give the GPU's number, such as {}:0", rt::backend, index, rt::backend));
  return value;
}

WorkArgs DeviceState::work_args(std::int64_t duration) const {
  WorkArgs args;
  args.work = work;
  args.duration = duration;
  args.multiprocessors = multiprocessors;
  args.scratch = scratch;
  args.scratch_bytes = scratch_bytes;
  args.sink = sink;
  return args;
}

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

#include "platforms/gpu/clock.hpp"

#include <atomic>
#include <cmath>
#include <cstdint>

#include <fmt/format.h>

#include "platforms/error.hpp"
#include "platforms/gpu/memory.hpp"

namespace slacktier::gpu {
namespace {

constexpr std::uint32_t rounds = 24;
constexpr Nanos renew_after = 1'000'000'000;
constexpr Nanos patience = 2'000'000'000;

struct Mailbox {
  std::atomic<std::uint32_t> asked{0};
  alignas(64) std::atomic<std::uint32_t> answered{0};
  alignas(64) std::int64_t times[rounds] = {};
};

}  // namespace

ClockMap::ClockMap(std::shared_ptr<DeviceState> device)
    : device_(std::move(device)), stream_(device_, "clock"), mailbox_(make_host_buffer(device_, sizeof(Mailbox))) {
  new (mailbox_->host()) Mailbox;
  latest_ = read();
}

Nanos ClockMap::host_time(std::int64_t stamp) {
  if (monotonic_clock().now() - latest_.host > renew_after) {
    const Moment now = read();
    // Half a second between two readings that are right to a microsecond gives the rate to a few parts in a million.
    rate_ = static_cast<double>(now.host - latest_.host) / static_cast<double>(now.device - latest_.device);
    latest_ = now;
  }
  return latest_.host + static_cast<Nanos>(std::llround(static_cast<double>(stamp - latest_.device) * rate_));
}

ClockMap::Moment ClockMap::read() {
  auto& mailbox = *static_cast<Mailbox*>(mailbox_->host());
  auto* address = static_cast<std::byte*>(mailbox_->device());
  const auto at = [&](const void* member) {
    return address + (static_cast<const std::byte*>(member) - static_cast<const std::byte*>(mailbox_->host()));
  };
  mailbox.asked.store(0);
  mailbox.answered.store(0);
  ClockArgs args;
  args.asked = reinterpret_cast<const std::uint32_t*>(at(&mailbox.asked));
  args.answered = reinterpret_cast<std::uint32_t*>(at(&mailbox.answered));
  args.times = reinterpret_cast<std::int64_t*>(at(mailbox.times));
  args.rounds = rounds;
  device_->enter();
  launch_clock(stream_.native(), args);
  device_->check(rt::last_error(), "reading the device's clock");
  const Clock& clock = monotonic_clock();
  Moment best;
  for (std::uint32_t round = 1; round <= rounds; ++round) {
    const Nanos before = clock.now();
    mailbox.asked.store(round, std::memory_order_release);
    Nanos after = before;
    while (mailbox.answered.load(std::memory_order_acquire) < round) {
      after = clock.now();
      if (after - before < patience) continue;
      mailbox.asked.store(UINT32_MAX, std::memory_order_release);
      stream_.synchronize();
      throw DeviceError(
          fmt::format("{}: the device does not run a kernel within {} s", device_->name, patience / 1'000'000'000));
    }
    after = clock.now();
    // The first answer waits for the kernel's start.
    const Nanos half = (after - before) / 2;
    if (round > 1 && (best.host == 0 || half < best.uncertainty)) best = {before + half, mailbox.times[round - 1], half};
  }
  stream_.synchronize();
  return best;
}

}  // namespace slacktier::gpu

// What the parts of bench_gpu share: memory for kernels, the time of one launch, and a line of output.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/bench/gpu/limits.hpp"
#include "tests/kernel_bench.hpp"
#include "tier/tier.hpp"

namespace slacktier {

class Bench : public testing::KernelBench {
 public:
  Bench(Device& device, bool quick) : KernelBench(device), stamps_(device.allocate_host(16)), quick_(quick) {
    device.load_module(tier_modules());
    device.load_module(limit_modules());
  }

  std::byte* device_bytes(std::size_t n) {
    buffers_.push_back(device_.allocate_device(n));
    return static_cast<std::byte*>(buffers_.back()->device());
  }
  // Device memory with random bytes from `first` on, `count` of them.
  std::byte* device_bytes(std::size_t n, std::mt19937_64& random, std::uint32_t first, std::uint32_t count) {
    constexpr std::size_t part = std::size_t{8} << 20;
    auto staged = device_.allocate_host(part);
    auto* bytes = static_cast<std::byte*>(staged->host());
    for (std::size_t i = 0; i < part; ++i) bytes[i] = static_cast<std::byte>(first + random() % count);
    std::byte* to = device_bytes(n);
    for (std::size_t at = 0; at < n; at += part) stream_->copy(to + at, staged->host(), std::min(part, n - at));
    stream_->synchronize();
    return to;
  }
  // Host memory, random in its first MiB and then again and again: bytes that are finite as values and common as scales, for
  // records begin anywhere.
  std::byte* host_bytes(std::size_t n, std::mt19937_64& random) {
    buffers_.push_back(device_.allocate_host(n));
    auto* bytes = static_cast<std::byte*>(buffers_.back()->host());
    const std::size_t part = std::min<std::size_t>(n, 1 << 20);
    for (std::size_t i = 0; i < part; ++i) bytes[i] = static_cast<std::byte>(128 + random() % 10);
    for (std::size_t at = part; at < n; at += part) std::memcpy(bytes + at, bytes, std::min(part, n - at));
    return static_cast<std::byte*>(buffers_.back()->device());
  }

  // Microseconds of one launch. `enqueue(i)` queues the i-th.
  double time(std::uint32_t launches, const std::function<void(Stream&, std::uint32_t)>& enqueue) {
    auto* at = static_cast<std::int64_t*>(stamps_->host());
    device_.begin_capture(*stream_);
    stream_->timestamp(at);
    for (std::uint32_t i = 0; i < launches; ++i) enqueue(*stream_, i);
    stream_->timestamp(at + 1);
    const auto graph = device_.end_capture(*stream_);
    std::vector<double> samples;
    for (int replay = 0; replay < (quick_ ? 5 : 60); ++replay) {
      graph->launch(*stream_);
      stream_->synchronize();
      samples.push_back(static_cast<double>(at[1] - at[0]) / 1e3 / launches);
    }
    std::sort(samples.begin(), samples.end());
    return samples[samples.size() / 2];
  }

 private:
  std::unique_ptr<Buffer> stamps_;
  bool quick_;
};

inline void print(const std::string& what, double us, const std::string& against = "", double limit = 0) {
  if (against.empty())
    fmt::print("{:<66} {:8.2f} us\n", what, us);
  else
    fmt::print("{:<66} {:8.2f} us   {:5.2f} x {}\n", what, us, us / limit, against);
  std::fflush(stdout);
}

// The parts. Each throws CheckFailed when what it times delivers wrong rows.
// `peer` names another GPU that holds a table, too; empty: none.
void bench_gathers(Device& device, bool quick, const std::string& peer);
// `device` was opened with work "gemm" or "stream", which runs beside the gather.
void bench_contention(Device& device, bool quick);
void bench_step(Device& device, const std::string& folder, bool quick);
// The results of all 65,536 pairs, scale by scale, in the machine's byte order.
void write_pairs(Device& device, const std::string& file, OutputFormat output);

}  // namespace slacktier

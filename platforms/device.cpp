#include "platforms/device.hpp"

#include <fmt/format.h>

#include "platforms/backend.hpp"
#include "platforms/error.hpp"

namespace slacktier {
namespace {

constexpr Backend kBackends[] = {
    {"cpu", "cpu", open_cpu_device},
#if defined(SLACKTIER_CUDA)
    {"cuda", "cuda:0", open_cuda_device},
#endif
#if defined(SLACKTIER_HIP)
    {"hip", "hip:0", open_hip_device},
#endif
};

}  // namespace

std::unique_ptr<Device> open_device(const std::string& name, const DeviceOptions& options) {
  const std::size_t colon = name.find(':');
  const std::string_view backend = std::string_view(name).substr(0, colon);
  const std::string_view index = colon == std::string::npos ? std::string_view() : std::string_view(name).substr(colon + 1);
  std::string known;
  for (const Backend& candidate : kBackends) {
    if (candidate.name == backend) return candidate.open(index, options);
    known += (known.empty() ? "" : ", ") + std::string(candidate.example);
  }
#if !defined(SLACKTIER_CUDA)
  if (backend == "cuda")
    throw UsageError(
        fmt::format("device '{}': this build has {}; build with `cmake --preset cuda` (needs nvcc)", name, known));
#endif
#if !defined(SLACKTIER_HIP)
  if (backend == "hip")
    throw UsageError(fmt::format("device '{}': this build has {}; build with `cmake --preset hip`", name, known));
#endif
  throw UsageError(fmt::format("unknown device '{}': this build has {}", name, known));
}

}  // namespace slacktier

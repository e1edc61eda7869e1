#include "tier/kernels/modules.hpp"

#include <cstdint>
#include <vector>

#include "tier/gather.hpp"

namespace slacktier {

std::span<const ModuleImage> tier_modules() {
#if defined(SLACKTIER_GPU_HIP)  // in the plug-in
  static const std::vector<ModuleImage> images = {{"hip", gpu_kernels()}};
#else
  static const std::vector<ModuleImage> images = {
    {"cpu", cpu_kernels()},
#if defined(SLACKTIER_CUDA)
    {"cuda", gpu_kernels()},
#endif
  };
#endif
  return images;
}

CacheArrays cache_layout(const TableSpec& spec) {
  CacheArrays cache;
  const bool fp8 = spec.format == RecordFormat::fp8_e4m3_block32;
  cache.value_bytes = fp8 ? spec.row_values : spec.row_values * 2;
  cache.scale_bytes = fp8 ? spec.row_values / 32 : 0;
  return cache;
}

}  // namespace slacktier

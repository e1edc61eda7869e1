// The tier's kernels by backend.
#pragma once

#include <span>

#include "platforms/device.hpp"

namespace slacktier {

std::span<const KernelEntry> cpu_kernels();
std::span<const KernelEntry> gpu_kernels();  // in builds with CUDA, and in the HIP plug-in

}  // namespace slacktier

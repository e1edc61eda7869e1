// The test kernels for GPUs.
#include <array>
#include <span>

#include "platforms/device.hpp"
#include "platforms/kernel.hpp"
#include "tests/gpu/arguments.hpp"

namespace slacktier::test {
namespace {

SLACKTIER_KERNEL add_kernel(Add a) { *a.to = *a.from + a.constant; }
SLACKTIER_KERNEL mix_kernel(Mix a) {
  *a.to = static_cast<std::int64_t>(static_cast<std::uint64_t>(*a.to) * 31 + static_cast<std::uint64_t>(*a.from));
}
SLACKTIER_KERNEL read_status_kernel(ReadStatus a) { *a.to = *a.status; }
SLACKTIER_KERNEL sum_words_kernel(SumWords a) {
  std::int64_t sum = 0;
  for (int i = 0; i < 200; ++i) sum += a.words[i];
  *a.to = sum;
}

template <class Args, void (*kernel)(Args)>
void launch_one(void* stream, const void* args) {
  SLACKTIER_LAUNCH(kernel, 1, 1, stream, *static_cast<const Args*>(args));
}

}  // namespace

std::span<const ModuleImage> test_modules() {
  static constexpr std::array kernels{KernelEntry{"add", launch_one<Add, add_kernel>},
                                      KernelEntry{"mix", launch_one<Mix, mix_kernel>},
                                      KernelEntry{"read_status", launch_one<ReadStatus, read_status_kernel>},
                                      KernelEntry{"sum_words", launch_one<SumWords, sum_words_kernel>}};
#if defined(SLACKTIER_GPU_HIP)
  static constexpr std::array images{ModuleImage{"hip", kernels}};
#else
  static constexpr std::array images{ModuleImage{"cuda", kernels}};
#endif
  return images;
}

}  // namespace slacktier::test

// The tier's kernels for CUDA and HIP.
#include <array>

#include "tier/gather_kernels.hpp"
#include "tier/kernels/modules.hpp"

namespace slacktier {

std::span<const KernelEntry> gpu_kernels() {
  static constexpr std::array kernels{KernelEntry{"tier.hash.ngram", launch_hash_ngram},
                                      KernelEntry{"tier.hash.polynomial", launch_hash_polynomial},
                                      KernelEntry{"tier.hash.token_id", launch_hash_token_id},
                                      KernelEntry{"tier.gather", launch_gather}, KernelEntry{"tier.store", launch_store}};
  return kernels;
}

}  // namespace slacktier

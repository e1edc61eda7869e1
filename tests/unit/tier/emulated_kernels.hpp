// A cpu device whose kernels are the GPUs' own, run lane by lane (platforms/kernel_emulation.hpp).
#pragma once

#include <memory>

#include "tests/kernel_checks.hpp"
#include "tier/gather_kernels.hpp"

namespace slacktier::testing {
namespace {

// Fibers switch stacks in ways that the thread sanitizer does not know.
constexpr bool emulation_runs() {
#if defined(__SANITIZE_THREAD__)
  return false;
#else
  return true;
#endif
}

[[maybe_unused]] std::unique_ptr<Device> open_emulated() {
  static const KernelEntry kernels[] = {{"tier.hash.ngram", launch_hash_ngram},
                                        {"tier.hash.polynomial", launch_hash_polynomial},
                                        {"tier.hash.token_id", launch_hash_token_id},
                                        {"tier.gather", launch_gather},
                                        {"tier.store", launch_store}};
  static const ModuleImage images[] = {{"cpu", kernels}};
  auto device = open_device("cpu");
  device->load_module(images);
  return device;
}

}  // namespace
}  // namespace slacktier::testing

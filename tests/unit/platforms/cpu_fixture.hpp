// Kernels and a device for the tests of the cpu device.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

#include "platforms/device.hpp"
#include "platforms/error.hpp"
#include "platforms/executor.hpp"

namespace slacktier::test {

struct Add {
  std::int64_t* to;
  const std::int64_t* from;
  std::int64_t constant;
};
inline void add(void*, const void* args) {
  const Add& a = *static_cast<const Add*>(args);
  *a.to = *a.from + a.constant;
}

// to = to * 31 + from: the order of such operations shows in the result.
struct Mix {
  std::int64_t* to;
  const std::int64_t* from;
};
inline void mix(void*, const void* args) {
  const Mix& a = *static_cast<const Mix*>(args);
  *a.to = static_cast<std::int64_t>(static_cast<std::uint64_t>(*a.to) * 31 + static_cast<std::uint64_t>(*a.from));
}

struct ReadStatus {
  const Signal* signal;
  std::int64_t* to;
};
inline void read_status(void*, const void* args) {
  const ReadStatus& a = *static_cast<const ReadStatus*>(args);
  *a.to = a.signal->status.load(std::memory_order_relaxed);
}

struct SumWords {
  std::int64_t words[200];  // 1,600 bytes of arguments
  std::int64_t* to;
};
inline void sum_words(void*, const void* args) {
  const SumWords& a = *static_cast<const SumWords*>(args);
  std::int64_t sum = 0;
  for (const std::int64_t word : a.words) sum += word;
  *a.to = sum;
}

struct Nothing {};
inline void fail(void*, const void*) { throw std::runtime_error("kernel broke"); }
inline void fail_oddly(void*, const void*) { throw 3; }

inline constexpr KernelEntry kKernels[] = {{"add", add},
                                           {"mix", mix},
                                           {"read_status", read_status},
                                           {"sum_words", sum_words},
                                           {"fail", fail},
                                           {"fail_oddly", fail_oddly}};
inline constexpr ModuleImage kImages[] = {{"cuda", {}}, {"cpu", kKernels}};

inline std::unique_ptr<Device> open_loaded() {
  std::unique_ptr<Device> device = open_device("cpu");
  device->load_module(kImages);
  return device;
}

template <class Call>
std::string message_of(const Call& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "(nothing was thrown)";
}

}  // namespace slacktier::test

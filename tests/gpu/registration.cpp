// A driver that refuses to register host memory: at once, and half-way through a buffer that takes more than one
// registration. The linker puts these two in place of the runtime's (-Wl,--wrap, see tests/CMakeLists.txt).
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "platforms/error.hpp"
#include "platforms/quantity.hpp"
#include "tests/gpu/fixture.hpp"

#if defined(SLACKTIER_CUDA)
#include <cuda_runtime_api.h>
#endif

namespace {

int allowed = std::numeric_limits<int>::max();  // registrations until one is refused
std::vector<void*> held;

}  // namespace

#if defined(SLACKTIER_CUDA)
extern "C" {
cudaError_t __real_cudaHostRegister(void* base, std::size_t bytes, unsigned flags);
cudaError_t __real_cudaHostUnregister(void* base);

cudaError_t __wrap_cudaHostRegister(void* base, std::size_t bytes, unsigned flags) {
  if (allowed-- <= 0) return cudaErrorMemoryAllocation;
  const cudaError_t error = __real_cudaHostRegister(base, bytes, flags);
  if (error == cudaSuccess) held.push_back(base);
  return error;
}

cudaError_t __wrap_cudaHostUnregister(void* base) {
  std::erase(held, base);
  return __real_cudaHostUnregister(base);
}
}
#endif

namespace slacktier::test {

TEST_CASE("a refused registration says what was asked, what is held and which limit to raise, and keeps nothing pinned",
          "[registration]") {
  if (gpu_backend() != "cuda")
    return skip_test("the refusal is injected in CUDA's runtime; HIP takes the same path of ours");
  const auto device = open_gpu();
  if (!device) return;
  const auto before = held.size();
  const std::size_t three_chunks = (std::size_t{2} << 30) + 12'288;
  for (const int until : {0, 1, 2}) {
    allowed = until;
    std::string message;
    try {
      device->allocate_host(three_chunks);
    } catch (const EnvironmentError& error) {
      message = error.what();
    }
    allowed = std::numeric_limits<int>::max();
    INFO(message);
    CHECK(message.find("the driver refuses to register ") != std::string::npos);
    CHECK(message.find("(" + bytes_text(static_cast<std::uint64_t>(until) << 30) + " of 2.0 GiB are registered)") !=
          std::string::npos);
    CHECK(message.find("ulimit -l") != std::string::npos);
    CHECK(held.size() == before);
  }
  // The device is as usable as before.
  const auto memory = device->allocate_host(4096);
  CHECK(held.size() == before + 1);
  const auto stream = device->create_stream("main");
  stream->fill(memory->device(), 7, 4096);
  stream->synchronize();
  CHECK(static_cast<const unsigned char*>(memory->host())[4095] == 7);
}

}  // namespace slacktier::test

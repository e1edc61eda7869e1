// Another GPU's memory. Skipped where there is no second GPU that the first can read.
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "platforms/quantity.hpp"
#include "tests/gpu/fixture.hpp"

using namespace slacktier;
using namespace slacktier::test;

namespace {

const std::string peer = gpu_backend() + ":1";

// The first GPU, or nothing (and the case is skipped) when it has no peer.
std::unique_ptr<Device> open_with_peer() {
  auto device = open_gpu();
  if (!device) return nullptr;
  try {
    device->allocate_peer(peer, 4096);
  } catch (const EnvironmentError& error) {
    skip_test(error.what());
    return nullptr;
  }
  return device;
}

}  // namespace

TEST_CASE("a GPU reads and writes its peer's memory", "[peer]") {
  const auto device = open_with_peer();
  if (!device) return;
  constexpr std::size_t n = 1'000'000;
  const auto memory = device->allocate_peer(peer, n * 8);
  CHECK(memory->host() == nullptr);
  CHECK(memory->bytes() == (n * 8 + 4095) / 4096 * 4096);
  const auto stream = device->create_stream("main");
  const auto on_host = device->allocate_host(n * 8);
  auto* words = static_cast<std::int64_t*>(on_host->host());
  std::memset(words, 1, n * 8);
  stream->copy(words, memory->device(), n * 8);
  stream->synchronize();
  CHECK(words[0] == 0);
  CHECK(words[n - 1] == 0);
  for (std::size_t i = 0; i < n; ++i) words[i] = static_cast<std::int64_t>(i);
  stream->copy(memory->device(), words, n * 8);
  auto* far = static_cast<std::int64_t*>(memory->device());
  stream->launch("add", Add{far + 5, far + n - 1, 7});
  stream->copy(words, far, n * 8);
  stream->synchronize();
  CHECK(words[5] == static_cast<std::int64_t>(n + 6));
  CHECK(words[6] == 6);
  const std::size_t too_much = std::size_t{1} << 42;
  CHECK(message_of([&] {
          device->allocate_peer(peer, too_much);
        }).find(peer + ": " + bytes_text(too_much) + " of device memory are needed") != std::string::npos);
}

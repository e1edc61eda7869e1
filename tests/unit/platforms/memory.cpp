#include "platforms/memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#include "platforms/error.hpp"
#include "tests/catch.hpp"

using namespace slacktier;

namespace {

// Bytes that the process has mapped, from /proc/self/statm.
std::size_t mapped_bytes() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

TEST_CASE("Sizes are exact to 4 KiB", "[memory]") {
  for (const std::size_t bytes :
       {std::size_t{1}, std::size_t{4096}, std::size_t{4097}, std::size_t{3} << 20, (std::size_t{9} << 20) + 5}) {
    for (const bool huge : {true, false}) {
      const std::size_t expected = (bytes + 4095) / 4096 * 4096;
      const std::size_t before = mapped_bytes();
      const HostMemory memory(bytes, huge);
      CHECK(mapped_bytes() - before == expected);
      CHECK(memory.bytes() == expected);
      CHECK(reinterpret_cast<std::uintptr_t>(memory.data()) % 4096 == 0);
    }
  }
}

TEST_CASE("Memory is zeroed and writable to its last byte", "[memory]") {
  const HostMemory memory((std::size_t{4} << 20) + 4096);
  auto* bytes = static_cast<unsigned char*>(memory.data());
  std::size_t sum = 0;
  for (std::size_t i = 0; i < memory.bytes(); ++i) sum += bytes[i];
  CHECK(sum == 0);
  std::memset(bytes, 0xFF, memory.bytes());
  CHECK(bytes[memory.bytes() - 1] == 0xFF);
}

TEST_CASE("Memory for huge pages begins at one", "[memory]") {
  const HostMemory memory(std::size_t{5} << 20);
  CHECK(reinterpret_cast<std::uintptr_t>(memory.data()) % (2 << 20) == 0);
}

TEST_CASE("Moving hands the memory on, and it is unmapped once", "[memory]") {
  const std::size_t before = mapped_bytes();
  {
    HostMemory first(8192);
    void* data = first.data();
    HostMemory second(std::move(first));
    CHECK(second.data() == data);
    HostMemory third(4096);
    third = std::move(second);
    CHECK(third.data() == data);
    CHECK(third.bytes() == 8192);
    CHECK(mapped_bytes() - before == 8192);
  }
  CHECK(mapped_bytes() == before);
}

TEST_CASE("No bytes map nothing", "[memory]") {
  const HostMemory none(0);
  CHECK(none.data() == nullptr);
  CHECK(none.bytes() == 0);
}

TEST_CASE("Too much memory is refused by size", "[memory]") {
  for (const std::size_t bytes : {std::size_t{1} << 60, static_cast<std::size_t>(-1)}) {
    try {
      const HostMemory memory(bytes);
      FAIL("mapped " << memory.bytes());
    } catch (const EnvironmentError& error) {
      CHECK(std::string(error.what()).find(std::to_string(bytes) + " bytes") != std::string::npos);
    }
  }
}

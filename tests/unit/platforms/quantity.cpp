#include "platforms/quantity.hpp"

#include <cstdint>

#include "tests/catch.hpp"

using namespace slacktier;

TEST_CASE("Bytes read in the unit that fits", "[quantity]") {
  CHECK(bytes_text(0) == "0 B");
  CHECK(bytes_text(4096) == "4096 B");
  CHECK(bytes_text(10 * 1024) == "10.0 KiB");
  CHECK(bytes_text((1 << 20) - 1) == "1024 KiB");
  CHECK(bytes_text(1 << 20) == "1.0 MiB");
  CHECK(bytes_text(std::uint64_t{812} << 20) == "812 MiB");
  CHECK(bytes_text(25'300'000'000) == "23.6 GiB");
  CHECK(bytes_text(UINT64_MAX) == "16384 PiB");
  CHECK(bytes_of_text(1 << 30, std::uint64_t{3} << 30) == "1.0/3.0 GiB");
  CHECK(bytes_of_text(5, 4096) == "5/4096 B");
}

TEST_CASE("Durations read in seconds, minutes and hours", "[quantity]") {
  CHECK(duration_text(0) == "0 s");
  CHECK(duration_text(59) == "59 s");
  CHECK(duration_text(185) == "3:05 min");
  CHECK(duration_text(7'260) == "2:01 h");
}

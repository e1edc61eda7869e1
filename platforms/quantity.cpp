#include "platforms/quantity.hpp"

#include <array>
#include <cstdint>

#include <fmt/format.h>

namespace slacktier {
namespace {

constexpr std::array<const char*, 6> kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};

// The power of 1,024 in which `bytes` reads best.
std::size_t unit_of(std::uint64_t bytes) {
  if (bytes < 10 * 1024) return 0;
  std::size_t unit = 1;
  for (std::uint64_t rest = bytes >> 10; rest >= 1024 && unit + 1 < kUnits.size(); rest >>= 10) ++unit;
  return unit;
}

std::string in_unit(std::uint64_t bytes, std::size_t unit) {
  if (unit == 0) return std::to_string(bytes);
  const double value = static_cast<double>(bytes) / static_cast<double>(std::uint64_t{1} << (10 * unit));
  return value < 99.95 ? fmt::format("{:.1f}", value) : fmt::format("{:.0f}", value);
}

}  // namespace

std::string bytes_text(std::uint64_t bytes) {
  const std::size_t unit = unit_of(bytes);
  return fmt::format("{} {}", in_unit(bytes, unit), kUnits[unit]);
}

std::string bytes_of_text(std::uint64_t part, std::uint64_t whole) {
  const std::size_t unit = unit_of(whole);
  return fmt::format("{}/{} {}", in_unit(part, unit), in_unit(whole, unit), kUnits[unit]);
}

std::string duration_text(std::uint64_t seconds) {
  if (seconds < 60) return fmt::format("{} s", seconds);
  if (seconds < 3600) return fmt::format("{}:{:02} min", seconds / 60, seconds % 60);
  return fmt::format("{}:{:02} h", seconds / 3600, seconds % 3600 / 60);
}

}  // namespace slacktier

#include "tier/directory.hpp"

#include <cstdint>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "platforms/error.hpp"
#include "tier/directory/clock.hpp"
#include "tier/directory/lru.hpp"
#include "tier/directory/s3fifo.hpp"
#include "tier/directory/sieve.hpp"
#include "tier/directory/static.hpp"

namespace slacktier {
namespace {

struct PolicyEntry {
  const char* name;
  std::unique_ptr<Directory> (*make)(std::uint64_t rows, std::uint32_t slots, std::uint32_t reserved);
};

template <class Policy>
std::unique_ptr<Directory> make_with(std::uint64_t rows, std::uint32_t slots, std::uint32_t reserved) {
  return std::make_unique<DirectoryOf<Policy>>(rows, slots, reserved);
}

// One line per policy.
constexpr PolicyEntry policies[] = {
    {"clock", make_with<ClockPolicy>}, {"lru", make_with<LruPolicy>},       {"s3fifo", make_with<S3FifoPolicy>},
    {"sieve", make_with<SievePolicy>}, {"static", make_with<StaticPolicy>},
};

}  // namespace

std::unique_ptr<Directory> Directory::make(const std::string& policy, std::uint64_t rows, std::uint64_t slots,
                                           std::uint64_t reserved) {
  if (rows == 0 || rows >= (std::uint64_t{1} << 31))
    throw UsageError(fmt::format("directory: {} rows; a shard has from 1 to 2^31 - 1 rows: use more ranks", rows));
  const std::uint64_t wanted = std::min(slots, rows), most = std::min(std::max(slots, reserved), rows);
  if (most > max_slots) throw UsageError(fmt::format("cache of {} rows: at most {} rows a layer and rank", most, max_slots));
  for (const auto& entry : policies)
    if (policy == entry.name) return entry.make(rows, static_cast<std::uint32_t>(wanted), static_cast<std::uint32_t>(most));
  throw UsageError(fmt::format("unknown cache policy '{}': use one of {}", policy, fmt::join(directory_policies(), ", ")));
}

std::vector<std::string> directory_policies() {
  std::vector<std::string> names;
  for (const auto& entry : policies) names.emplace_back(entry.name);
  return names;
}

}  // namespace slacktier

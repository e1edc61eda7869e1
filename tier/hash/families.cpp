#include <fmt/format.h>

#include <array>

#include "platforms/error.hpp"
#include "tier/hash/family.hpp"

namespace slacktier {

namespace {

const std::array<const HashFamily*, 2> registered{
    &engram_family,
    &ple_family,
};

}  // namespace

const HashFamily& hash_family(const std::string& name) {
  for (const HashFamily* family : registered) {
    if (family->name == name) return *family;
  }
  throw UsageError(fmt::format("unknown hash family \"{}\": use {}", name, fmt::join(hash_families(), " or ")));
}

std::unique_ptr<RowHash> make_hash(const TableSpec& spec) { return hash_family(spec.hash).make(spec); }

std::vector<std::string> hash_families() {
  std::vector<std::string> names;
  for (const HashFamily* family : registered) names.emplace_back(family->name);
  return names;
}

}  // namespace slacktier

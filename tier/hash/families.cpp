#include <fmt/format.h>

#include "platforms/error.hpp"
#include "tier/hash_family.hpp"

namespace slacktier {

// One line a family.
#define SLACKTIER_HASH_FAMILIES(family) \
  family(engram_family) family(ple_family) family(token_id_family) family(polynomial_family) family(recorded_family)

#define SLACKTIER_DECLARE(name) extern const HashFamily name;
SLACKTIER_HASH_FAMILIES(SLACKTIER_DECLARE)

namespace {

std::vector<const HashFamily*>& registered() {
#define SLACKTIER_ADDRESS(name) &name,
  static std::vector<const HashFamily*> families{SLACKTIER_HASH_FAMILIES(SLACKTIER_ADDRESS)};
  return families;
}

}  // namespace

const HashFamily& hash_family(const std::string& name) {
  for (const HashFamily* family : registered()) {
    if (family->name == name) return *family;
  }
  throw UsageError(fmt::format("unknown hash family \"{}\": use {}", name, fmt::join(hash_families(), " or ")));
}

std::vector<const HashFamily*> all_hash_families() { return registered(); }

void register_hash_family(const HashFamily& family) {
  for (const HashFamily* known : registered()) {
    if (known->name == family.name) throw UsageError(fmt::format("hash family \"{}\" is there already", family.name));
  }
  registered().push_back(&family);
}

std::unique_ptr<RowHash> make_hash(const TableSpec& spec) { return hash_family(spec.hash).make(spec); }

std::vector<std::string> hash_families() {
  std::vector<std::string> names;
  for (const HashFamily* family : registered()) names.emplace_back(family->name);
  return names;
}

}  // namespace slacktier

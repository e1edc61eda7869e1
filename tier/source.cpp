#include "tier/source.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "platforms/error.hpp"
#include "tier/sources/disks.hpp"

namespace slacktier {
namespace {

struct SourceEntry {
  const char* name;
  std::unique_ptr<PageSource> (*make)(const ImageHeader&, const PagePool&, const SourceOptions&);
};

// One line per page source.
constexpr SourceEntry sources[] = {
    {"uring", make_uring_source},
    {"pread", make_pread_source},
};

}  // namespace

std::unique_ptr<PageSource> make_source(const std::string& name, const ImageHeader& header, const PagePool& pool,
                                        const SourceOptions& options) {
  if (header.paths.empty() || header.paths.size() > 64)
    throw UsageError(fmt::format("source {}: an image on {} disks; from 1 to 64 can be read", name, header.paths.size()));
  if (options.threads < 1 || options.threads > 64)
    throw UsageError(fmt::format("source {}: {} threads per disk; use from 1 to 64", name, options.threads));
  if (header.geometry.page_bytes != pool.page_bytes())
    throw UsageError(fmt::format("source {}: the image has pages of {} bytes, the page pool of {}", name,
                                 header.geometry.page_bytes, pool.page_bytes()));
  for (const auto& entry : sources)
    if (name == entry.name) return entry.make(header, pool, options);
  throw UsageError(fmt::format("unknown source '{}': use one of {} (or dram)", name, fmt::join(source_names(), ", ")));
}

std::vector<std::string> source_names() {
  std::vector<std::string> names;
  for (const auto& entry : sources) names.emplace_back(entry.name);
  return names;
}

}  // namespace slacktier

#include "tier/source.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>

#include "platforms/error.hpp"
#include "tier/sources/disks.hpp"
#include "tier/sources/wrappers.hpp"

namespace slacktier {
namespace {

struct SourceEntry {
  const char* name;
  std::unique_ptr<PageSource> (*make)(const ImageHeader&, const PagePool&, const SourceOptions&);
  bool page_cache = false, remote = false;
};

// One line per page source.
constexpr SourceEntry sources[] = {
    {"uring", make_uring_source},
    {"pread", make_pread_source},
    {"buffered", make_buffered_source, true},
    {"mmap", make_mmap_source, true},
    // Of servers:
    {"tcp", make_tcp_source, false, true},
    {"rdma", make_rdma_source, false, true},
};

struct WrapperEntry {
  const char* name;
  std::unique_ptr<PageSource> (*make)(WrapperSettings&, const Wrapping*);
};

// One line per wrapper.
constexpr WrapperEntry wrapper_table[] = {
    {"delayed", make_delayed_source},
    {"shared", make_shared_source},
    {"faulty", make_faulty_source},
};

const WrapperEntry& find_wrapper(const WrapperSettings& settings) {
  for (const auto& entry : wrapper_table)
    if (settings.name() == entry.name) return entry;
  settings.refuse(fmt::format("unknown wrapper; use one of {}", fmt::join(wrapper_names(), ", ")));
}

// Inside out: the last wrapper is next to the source.
std::unique_ptr<PageSource> wrap(const SourceFactory& source, const ImageHeader& header, const PagePool& pool,
                                 const SourceOptions& options, std::span<const std::string> wrappers) {
  if (wrappers.empty()) return source(pool, options);
  const SourceFactory inner = [&source, &header, wrappers](const PagePool& to, const SourceOptions& with) {
    return wrap(source, header, to, with, wrappers.subspan(1));
  };
  WrapperSettings settings(wrappers.front());
  const Wrapping wrapping{inner, header, pool, options};
  return find_wrapper(settings).make(settings, &wrapping);
}

}  // namespace

std::unique_ptr<PageSource> make_source(const std::string& name, const ImageHeader& header, const PagePool& pool,
                                        const SourceOptions& options, std::span<const std::string> wrappers) {
  if (header.paths.empty() || header.paths.size() > 64)
    throw UsageError(
        fmt::format("source {}: an image on {} disks; from 1 to {} can be read", name, header.paths.size(), max_disks));
  if (options.threads < 1 || options.threads > 64)
    throw UsageError(fmt::format("source {}: {} threads per disk; use from 1 to 64", name, options.threads));
  if (header.geometry.page_bytes != pool.page_bytes())
    throw UsageError(fmt::format("source {}: the image has pages of {} bytes, the page pool of {}", name,
                                 header.geometry.page_bytes, pool.page_bytes()));
  for (const auto& wrapper : wrappers) check_wrapper(wrapper);
  if (options.drop_cache && !uses_page_cache(name))
    throw UsageError(fmt::format("source {}: it does not read through the page cache, there is nothing to drop", name));
  for (const auto& entry : sources)
    if (name == entry.name)
      return wrap([&](const PagePool& to, const SourceOptions& with) { return entry.make(header, to, with); }, header, pool,
                  options, wrappers);
  throw UsageError(fmt::format("unknown source '{}': use one of {} (or dram)", name, fmt::join(source_names(), ", ")));
}

std::vector<std::string> source_names() {
  std::vector<std::string> names;
  for (const auto& entry : sources) names.emplace_back(entry.name);
  return names;
}

std::vector<std::string> disk_source_names() {
  std::vector<std::string> names;
  for (const auto& entry : sources)
    if (!entry.remote) names.emplace_back(entry.name);
  return names;
}

std::vector<std::string> wrapper_names() {
  std::vector<std::string> names;
  for (const auto& entry : wrapper_table) names.emplace_back(entry.name);
  return names;
}

void check_wrapper(const std::string& text) {
  WrapperSettings settings(text);
  find_wrapper(settings).make(settings, nullptr);
}

bool uses_page_cache(const std::string& source) {
  for (const auto& entry : sources)
    if (source == entry.name) return entry.page_cache;
  return false;
}

bool is_remote_source(const std::string& source) {
  for (const auto& entry : sources)
    if (source == entry.name) return entry.remote;
  return false;
}

}  // namespace slacktier

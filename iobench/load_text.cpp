#include "iobench/load_text.hpp"

#include <fmt/format.h>

namespace slacktier {

std::string load_text(const ReadResult& result) {
  return fmt::format("{} x{} thread(s), {} rank(s), {} disk(s), {} tenant(s), {}", result.source, result.threads,
                     result.ranks_on_disk, result.disks, result.tenants, result.order);
}

std::string pages_text(const ReadPoint& point) {
  std::string text;
  for (const auto& [k, pages] : point.pages_per_rank) text += fmt::format("{}{}:{}", text.empty() ? "" : ",", k, pages);
  return text;
}

}  // namespace slacktier

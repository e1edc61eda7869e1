#include <fmt/format.h>

#include <cstdint>
#include <ctime>
#include <stdexcept>

#include "reports/embedded/build_facts.hpp"
#include "reports/results.hpp"

namespace slacktier {
namespace {

std::string rfc3339(std::int64_t unix_s) {
  const std::time_t time = static_cast<std::time_t>(unix_s);
  std::tm utc{};
  gmtime_r(&time, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday, utc.tm_hour,
                     utc.tm_min, utc.tm_sec);
}

}  // namespace

std::string tool_version() { return build_facts().version; }
std::string git_commit() { return build_facts().commit; }
bool git_dirty() { return build_facts().dirty; }

Json provenance(const ProvenanceInput& input) {
  Json result = {{"tool", input.program},
                 {"version", tool_version()},
                 {"commit", git_commit()},
                 {"dirty", git_dirty()},
                 {"argv", input.argv},
                 {"seed", input.seed},
                 {"start_utc", rfc3339(input.start_unix_s)}};
  for (const auto& [key, fact] : input.facts.items()) {
    if (result.contains(key)) throw std::logic_error("provenance fact '" + key + "' would replace one of the program's own");
    result[key] = fact;
  }
  return result;
}

}  // namespace slacktier

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "platforms/error.hpp"
#include "tier/cli/commands.hpp"

namespace slacktier::cli {

void add_disks(CLI::App& app, std::vector<std::string>& disks, const std::string& what) {
  app.add_option("--disk", disks, what)->required()->allow_extra_args(false)->type_name("FILE|DEVICE");
}

void add_serials(CLI::App& app, std::vector<std::string>& serials) {
  app.add_option("--serial", serials, "Serial number of a block device given as --disk, or it is not touched. Repeatable")
      ->allow_extra_args(false)
      ->type_name("TEXT");
}

void add_quiet(CLI::App& app, bool& quiet) { app.add_flag("-q,--quiet", quiet, "No progress on stderr"); }

void add_format(CLI::App& app, bool& json) {
  app.add_option_function<std::string>(
         "--format", [&json](const std::string& format) { json = format == "json"; }, "text (default) or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->type_name("FORMAT");
}

std::uint64_t parse_bytes(const std::string& option, const std::string& text) {
  static constexpr const char* form = "write bytes with a unit if you like, such as 1GiB, 512MiB or 20GB";
  std::size_t used = 0;
  double number = -1;
  try {
    number = std::stod(text, &used);
  } catch (const std::logic_error&) {
  }
  std::string unit = text.substr(used);
  unit.erase(0, unit.find_first_not_of(' '));
  double factor = unit.empty() || unit == "B" ? 1 : 0;
  for (const auto& [names, base] :
       {std::pair{std::array{"KiB", "MiB", "GiB", "TiB"}, 1024.0}, std::pair{std::array{"kB", "MB", "GB", "TB"}, 1000.0}}) {
    double power = base;
    for (const char* name : names) {
      if (unit == name) factor = power;
      power *= base;
    }
  }
  const double bytes = number * factor;
  if (!(number > 0) || !(bytes >= 1) || bytes > 1e18) throw UsageError(fmt::format("{} {}: {}", option, text, form));
  return static_cast<std::uint64_t>(bytes);
}

std::uint32_t page_bytes_option(const std::string& text) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(parse_bytes("--page-size", text), UINT32_MAX));
}

}  // namespace slacktier::cli

// slacktier-iobench preflight: what about this disk and host would spoil a measurement.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>

#include "iobench/cli/commands.hpp"
#include "platforms/error.hpp"
#include "platforms/filesystem.hpp"
#include "platforms/preflight.hpp"
#include "platforms/quantity.hpp"

namespace slacktier::cli {
namespace {

struct PreflightArguments {
  std::vector<std::string> paths;
  std::string format = "table";
  bool strict = false;
};

std::string facts_line(const StorageFacts& facts) {
  std::string line = facts.path.path;
  if (!facts.path.block_device)
    line += fmt::format(": {} on {}, {} free", facts.path.mount.type, facts.path.mount.source,
                        bytes_text(facts.path.free_bytes));
  const DiskFacts& disk = facts.disk;
  if (!disk.name.empty()) {
    line += fmt::format("; disk {} ({}{}{})", disk.name, disk.attachment, disk.model.empty() ? "" : ", " + disk.model,
                        disk.firmware.empty() ? "" : ", firmware " + disk.firmware);
    if (disk.logical_block && disk.physical_block)
      line += fmt::format(", sectors {}/{} B", *disk.logical_block, *disk.physical_block);
    if (!disk.scheduler.empty()) line += ", scheduler " + disk.scheduler;
    if (!disk.write_cache.empty()) line += ", " + disk.write_cache;
    if (disk.numa_node) line += fmt::format(", NUMA node {}", *disk.numa_node);
    if (disk.temperature_c) line += fmt::format(", {:.0f} C", *disk.temperature_c);
    if (disk.pcie) line += fmt::format(", PCIe {} x{}", disk.pcie->speed, disk.pcie->width.value_or(0));
  }
  line += facts.direct.works ? fmt::format("; direct I/O in effect, {} B", facts.direct.block)
                             : "; no direct I/O: " + facts.direct.reason;
  return line;
}

// Where the pages end: of an image its own end, behind which a device may hold anything.
std::uint64_t pages_end(const std::string& path) {
  try {
    if (const ImageHeader image = read_image_header({path}); image.complete) return image.disk_bytes();
  } catch (const std::exception&) {  // no image, or one of several disks
  }
  return disk_bytes(path);
}

int look(const PreflightArguments& a) {
  const TableFormat format = parse_table_format(a.format);
  const HostFacts host = read_host_facts();
  const IoUringSupport io_uring = probe_io_uring();
  Table table;
  table.title = "What would spoil a measurement here";
  table.columns = {{"path", "", Align::left, "", 24},
                   {"finding", "", Align::left, "", 34},
                   {"why it matters", "", Align::left, "why", 34},
                   {"what to do", "", Align::left, "fix", 34}};
  for (const auto& path : a.paths) {
    if (!std::filesystem::exists(path)) throw UsageError(fmt::format("{}: no such file, folder or device", path));
    StorageFacts facts = read_storage_facts(path, image_header_bytes);
    if (!std::filesystem::is_directory(path)) facts.zero_share = sample_zeros(path, image_header_bytes, pages_end(path));
    table.head.push_back(facts_line(facts));
    for (const Finding& finding : preflight(facts, host, io_uring))
      table.rows.push_back({path, finding.what, finding.why, finding.fix});
  }
  if (table.rows.empty()) table.footnotes.push_back("nothing found");
  fmt::print("{}\n", render(table, format));
  std::fflush(stdout);
  return a.strict && !table.rows.empty() ? 1 : 0;
}

}  // namespace

Command add_preflight(CLI::App& app) {
  const auto a = std::make_shared<PreflightArguments>();
  app.add_option("path", a->paths, "Image, folder or block device (only read)")->required()->type_name("PATH");
  app.add_flag("--strict", a->strict, "Exit with 1 when anything was found");
  app.add_option("--format", a->format, "table, md, csv or json")->capture_default_str();
  return [a] { return look(*a); };
}

}  // namespace slacktier::cli

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "platforms/error.hpp"
#include "platforms/program.hpp"
#include "platforms/progress.hpp"
#include "platforms/quantity.hpp"
#include "tier/cli/commands.hpp"
#include "tier/cli/describe.hpp"
#include "tier/image.hpp"

namespace slacktier::cli {

namespace {

struct StageSettings {
  std::string table = "engram_v41", rows, shard_map = "contiguous", size, page_size = "4096";
  StageOptions options;
  bool replace = false, dry_run = false, quiet = false, json = false;
};

// What a dry run assumes of a disk, since measuring it would mean writing: a common NVMe drive writes this or more.
constexpr double assumed_bytes_per_second = 1e9;

int dry_run(const StageSettings& settings, const ImageHeader& plan) {
  const double seconds = static_cast<double>(plan.disk_bytes()) / assumed_bytes_per_second;
  if (settings.json) {
    nlohmann::json json = describe_json(plan);
    json["paths"] = settings.options.disks;
    json["dry_run"] = true;
    json["assumed_bytes_per_second_per_disk"] = assumed_bytes_per_second;
    json["seconds"] = seconds;
    fmt::print("{}\n", json.dump(2));
    return ExitCode::done;
  }
  fmt::print("would stage\n{}", describe_text(plan));
  for (const std::string& disk : settings.options.disks) fmt::print("  {}: {} bytes\n", disk, plan.disk_bytes());
  fmt::print("in about {} if every disk writes {:.0f} GB/s; nothing was written\n",
             duration_text(static_cast<std::uint64_t>(seconds) + 1), assumed_bytes_per_second / 1e9);
  return ExitCode::done;
}

// Removes an image that lies on the disks already; what is no image is left for staging to refuse.
void discard_existing(const StageOptions& options) {
  std::vector<std::string> there;
  for (const std::string& disk : options.disks) {
    if (!std::filesystem::exists(disk)) continue;
    if (std::filesystem::is_regular_file(disk) && std::filesystem::file_size(disk) == 0) continue;
    there.push_back(disk);
  }
  if (!there.empty()) discard_image(there, options.serials);
}

int run(StageSettings& settings) {
  StageOptions& options = settings.options;
  options.shard_map = parse_shard_map(settings.shard_map);
  if (!settings.size.empty()) options.max_bytes = parse_bytes("--size", settings.size);
  options.page_bytes = page_bytes_option(settings.page_size);
  const TableSpec spec = load_table_spec(settings.table);
  if (!settings.rows.empty()) options.rows = checkpoint_table(spec, settings.rows);
  const ImageHeader plan = plan_image(spec, options);
  if (settings.dry_run) return dry_run(settings, plan);
  if (settings.replace) discard_existing(options);
  options.progress = watch_progress("staging", ProgressUnit::bytes, settings.quiet);
  const StageReport report = stage_image(spec, options);
  options.progress = {};  // ends the bar before results are printed
  if (settings.json) {
    nlohmann::json json = describe_json(read_image_header(options.disks));
    json["written_bytes"] = report.written;
    json["seconds"] = report.seconds;
    json["direct_io"] = report.direct;
    json["without_direct_io"] = report.buffered;
    fmt::print("{}\n", json.dump(2));
    return ExitCode::done;
  }
  fmt::print("{}", describe_text(read_image_header(options.disks)));
  if (report.written == 0) {
    fmt::print("all of it was staged before; nothing was written\n");
  } else {
    fmt::print("wrote {} in {:.1f} s, {:.2f} GB/s{}\n", bytes_text(report.written), report.seconds,
               static_cast<double>(report.written) / report.seconds / 1e9,
               report.written < report.bytes
                   ? fmt::format("; {} were there from before", bytes_text(report.bytes - report.written))
                   : "");
  }
  for (const std::string& path : report.buffered) {
    fmt::print("{}: its file system has no direct I/O, pages went through the page cache; reads from it measure memory\n",
               path);
  }
  return ExitCode::done;
}

}  // namespace

Command add_stage(CLI::App& app) {
  const auto settings = std::make_shared<StageSettings>();
  StageOptions& options = settings->options;
  app.description("Writes a table's rows as an image; goes on where an interrupted staging of it ended.");
  app.add_option("--table", settings->table,
                 fmt::format("Table: {}, or a JSON file; default the first", fmt::join(built_in_tables(), ", ")))
      ->type_name("NAME|FILE.json");
  app.add_option("--rows", settings->rows, "Safetensors checkpoint with the rows (folder or file); default generated rows")
      ->type_name("DIR|FILE");
  add_disks(app, options.disks, "File (created) or block device; pages are striped over all given. Repeatable");
  app.add_option("--layers", options.layers, "Layers to stage, such as 1,14; default all of the table")
      ->delimiter(',')
      ->type_name("IDS");
  app.add_option("--ranks", options.ranks, "Number of tensor-parallel ranks that share the table; default 1")
      ->type_name("R");
  app.add_option("--rank", options.only_ranks, "Ranks to stage, from 0, such as 0,3; default all")
      ->delimiter(',')
      ->type_name("IDS");
  app.add_option("--shard-map", settings->shard_map, "How ranks share the rows: contiguous (default) or striped")
      ->type_name("MAP");
  app.add_option("--size", settings->size,
                 "Scale to at most this size over all disks, headers included (1GiB); default full size")
      ->type_name("BYTES");
  app.add_option("--page-size", settings->page_size, "Bytes of a page, 512 to 64KiB; default 4096")->type_name("BYTES");
  app.add_option("--seed", options.seed, "Seed of the generated rows; default 1");
  app.add_option("--threads", options.threads, "Threads that make and write pages; default two for every CPU")
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
  add_serials(app, options.serials);
  app.add_flag("--overwrite-filesystem", options.overwrite_filesystem,
               "Destroy file systems and partition tables on a device that nothing uses");
  app.add_flag("--replace", settings->replace, "Discard the images that the disks hold already");
  app.add_flag("--dry-run", settings->dry_run, "Say what would be written, and how long it would take");
  add_quiet(app, settings->quiet);
  add_format(app, settings->json);
  return [settings] { return run(*settings); };
}

}  // namespace slacktier::cli

// The commands on images that are there: verify, inspect, discard.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>

#include "platforms/error.hpp"
#include "platforms/program.hpp"
#include "platforms/progress.hpp"
#include "tier/cli/commands.hpp"
#include "tier/cli/describe.hpp"
#include "tier/image.hpp"

namespace slacktier::cli {

namespace {

struct ImageSettings {
  std::string table, rows;
  std::vector<std::string> disks, serials;
  std::uint64_t sample = 0;
  int threads = 0;
  bool all = false, quiet = false, json = false;
};

// The table of an image: the one given, or the built-in one of the name that its header gives.
TableSpec table_of(const ImageSettings& settings) {
  if (!settings.table.empty()) return load_table_spec(settings.table);
  const ImageHeader header = read_image_header(settings.disks);
  const auto built_in = built_in_tables();
  if (std::find(built_in.begin(), built_in.end(), header.table) == built_in.end()) {
    throw UsageError(
        fmt::format("{}: holds table {}, which is not built in: name its file with --table", header.paths[0], header.table));
  }
  return load_table_spec(header.table);
}

int verify(const ImageSettings& settings) {
  VerifyReport report;
  {
    const TableSpec spec = table_of(settings);
    const auto rows = settings.rows.empty() ? nullptr : checkpoint_table(spec, settings.rows);
    auto progress = watch_progress("verifying", ProgressUnit::steps, settings.quiet);
    report = verify_image(spec, settings.disks, settings.sample, std::move(progress), settings.threads, rows);
  }
  if (settings.json) {
    const nlohmann::json json{{"pages", report.pages}, {"bad", report.bad}, {"first_bad", report.first_bad}};
    fmt::print("{}\n", json.dump(2));
  } else {
    for (const std::string& bad : report.first_bad) fmt::print("{}\n", bad);
    if (report.bad > report.first_bad.size()) fmt::print("and {} more\n", report.bad - report.first_bad.size());
    fmt::print("{} of {} pages are bad\n", report.bad, report.pages);
  }
  return report.bad == 0 ? ExitCode::done : ExitCode::check_failed;
}

int inspect(const ImageSettings& settings) {
  const ImageHeader header = read_image_header(settings.disks);
  fmt::print("{}", settings.json ? describe_json(header).dump(2) + "\n" : describe_text(header));
  return ExitCode::done;
}

int discard(const ImageSettings& settings) {
  discard_image(settings.disks, settings.serials);
  for (const std::string& disk : settings.disks) fmt::print("discarded {}\n", disk);
  return ExitCode::done;
}

Command command(const std::shared_ptr<ImageSettings>& settings, int (*run)(const ImageSettings&)) {
  return [settings, run] { return run(*settings); };
}

}  // namespace

Command add_verify(CLI::App& app) {
  const auto settings = std::make_shared<ImageSettings>();
  app.description("Checks an image: page numbers, stamps, checksums and every record. Exit code 1 when a page is bad.");
  add_disks(app, settings->disks, "Disk of the image, in any order. Repeatable");
  app.add_option("--table", settings->table, "Table that the image should hold; default the built-in one of its name")
      ->type_name("NAME|FILE.json");
  app.add_option("--rows", settings->rows, "Safetensors checkpoint that the image was staged from; default generated rows")
      ->type_name("DIR|FILE");
  CLI::Option* const sample = app.add_option("--sample", settings->sample, "Check this many different random pages only")
                                  ->check(CLI::PositiveNumber)
                                  ->type_name("N");
  app.add_flag("--all", settings->all, "Check every page; the default")->excludes(sample);
  app.add_option("--threads", settings->threads, "Threads that read; default two for every CPU, 16 for samples")
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
  add_quiet(app, settings->quiet);
  add_format(app, settings->json);
  return command(settings, verify);
}

Command add_inspect(CLI::App& app) {
  const auto settings = std::make_shared<ImageSettings>();
  app.description("Prints what an image holds, complete or not.");
  add_disks(app, settings->disks, "Disk of the image, in any order. Repeatable");
  add_format(app, settings->json);
  return command(settings, inspect);
}

Command add_discard(CLI::App& app) {
  const auto settings = std::make_shared<ImageSettings>();
  app.description("Removes an image: its files, or its headers on block devices. What is no image is left as it is.");
  add_disks(app, settings->disks, "File or block device of an image. Repeatable");
  add_serials(app, settings->serials);
  return command(settings, discard);
}

}  // namespace slacktier::cli

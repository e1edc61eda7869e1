// slacktier-harness report: result files as a page.
#include <fmt/format.h>

#include <memory>

#include "harness/cli/commands.hpp"
#include "harness/report.hpp"

namespace slacktier {
namespace {

struct ReportArguments {
  std::vector<std::string> files;
  std::string folder, title = "SlackTier report";
};

int report(const ReportArguments& arguments) {
  const ReportOutput output = write_report(arguments.files, arguments.folder, arguments.title);
  if (!output.without_figures.empty())
    fmt::print(stderr, "slacktier-harness: without figures: {}\n", output.without_figures);
  fmt::print("{}: {} figure(s), {} file(s)\n", output.files.front().string(), output.figures, output.files.size());
  return 0;
}

}  // namespace

void add_report_command(CLI::App& app, std::function<int()>& chosen) {
  auto arguments = std::make_shared<ReportArguments>();
  CLI::App* command = app.add_subcommand("report", "Result files of any kind as one HTML page, Markdown and CSV");
  command->add_option("files", arguments->files, "Files of windows, reads, misses, results, placements, fits, …")
      ->required();
  command->add_option("-o,--out", arguments->folder, "Folder to write")->required();
  command->add_option("--title", arguments->title, "Title of the page")->capture_default_str();
  command->callback([arguments, &chosen] { chosen = [arguments] { return report(*arguments); }; });
}

}  // namespace slacktier

// slacktier-probe compare: windows files beside each other.
#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "platforms/error.hpp"
#include "probe/cli/commands.hpp"
#include "reports/windows_table.hpp"

namespace slacktier {
namespace {

struct CompareArguments {
  std::vector<std::string> files;
  std::string format = "table", plot;
};

int run(const CompareArguments& a) {
  const TableFormat format = parse_table_format(a.format);
  std::vector<Envelope> files;
  for (const std::string& file : a.files) files.push_back(read_envelope(file, "windows"));
  fmt::print("{}\n", render(compare_table(files), format));
  std::fflush(stdout);
  if (a.plot.empty()) return 0;
  write_text_file(a.plot, render_svg(windows_plot(files, true)));
  fmt::print(stderr, "plot: {}\n", a.plot);
  return 0;
}

}  // namespace

void add_compare_command(CLI::App& app, std::function<int()>& chosen) {
  auto arguments = std::make_shared<CompareArguments>();
  CLI::App* command = app.add_subcommand("compare", "Windows files beside each other, normalised by step and layers");
  command->add_option("files", arguments->files, "Windows files")->required();
  command->add_option("--format", arguments->format, "table, md, csv or json")->capture_default_str();
  command->add_option("--plot", arguments->plot, "Write them as one figure (SVG), over depth");
  command->callback([arguments, &chosen] { chosen = [arguments] { return run(*arguments); }; });
}

}  // namespace slacktier

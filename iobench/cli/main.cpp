#include <fmt/format.h>

#include <csignal>
#include <map>

#include "iobench/cli/commands.hpp"
#include "platforms/error.hpp"
#include "platforms/program.hpp"
#include "reports/results.hpp"

using namespace slacktier;

namespace {

int run(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);
  const cli::Invocation invocation{{argv, argv + argc}};
  CLI::App app("Measures when the last of a decode step's random pages has arrived, on the disks at hand.",
               "slacktier-iobench");
  app.set_version_flag("--version", tool_version());
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  std::map<const CLI::App*, cli::Command> commands;
  CLI::App* const run_app = app.add_subcommand("run", "Measure one load and say whether each layer's read fits its window");
  commands[run_app] = cli::add_run(*run_app, invocation);
  CLI::App* const sweep_app =
      app.add_subcommand("sweep", "Measure many loads, fit the read time, write a reads file for the planner");
  commands[sweep_app] = cli::add_sweep(*sweep_app, invocation);
  CLI::App* const compare_app = app.add_subcommand("compare", "Compare reads files point by point");
  commands[compare_app] = cli::add_compare(*compare_app);
  CLI::App* const preflight_app =
      app.add_subcommand("preflight", "Say what about this disk and host would spoil a measurement");
  commands[preflight_app] = cli::add_preflight(*preflight_app);
  app.footer(
      "Can this disk serve layer 14 of V4.1 at B = 128?\n"
      "  slacktier-iobench run --disk v41.image --create 4GiB --table engram_v41 --ranks 4 --batch 128 --windows "
      "1:0.27,14:9.35\n"
      "Exit codes: 0 done, 1 a layer does not fit or a comparison is slower, 2 wrong usage or file, 3 the environment "
      "lacks\n"
      "something, 4 I/O failure, 130 interrupted.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help
    const auto chosen = app.get_subcommands();
    throw UsageError(fmt::format("{}; see slacktier-iobench {}--help", error.what(),
                                 chosen.empty() ? "" : chosen.front()->get_name() + " "));
  }
  return commands.at(app.get_subcommands().front())();
}

}  // namespace

int main(int argc, char** argv) {
  return run_program("slacktier-iobench", [&] { return run(argc, argv); });
}

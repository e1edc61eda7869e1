#include <fmt/format.h>

#include <csignal>
#include <map>

#include "platforms/error.hpp"
#include "platforms/program.hpp"
#include "tier/cli/commands.hpp"

using namespace slacktier;

namespace {

int run(int argc, char** argv) {
  // A file size limit shall be an error that names the file, not the end of the process.
  std::signal(SIGXFSZ, SIG_IGN);
  CLI::App app(
      "Stages lookup tables as images on disks, checks them, takes them away again, and serves tables to other nodes.",
      "slacktier-tier");
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  std::map<const CLI::App*, cli::Command> commands;
  const auto add = [&](const char* name, cli::Command (*options)(CLI::App&)) {
    CLI::App* const command = app.add_subcommand(name);
    commands[command] = options(*command);
  };
  add("stage", cli::add_stage);
  add("verify", cli::add_verify);
  add("inspect", cli::add_inspect);
  add("discard", cli::add_discard);
  add("table", cli::add_table);
  add("serve", cli::add_serve);
  add("metrics", cli::add_metrics);
  app.footer(
      "A gigabyte of each of two layers' last quarters, striped over two disks:\n"
      "  slacktier-tier stage --table engram_v41 --ranks 4 --rank 3 --size 2GiB --disk a.img --disk b.img\n"
      "Exit codes: 0 done, 1 bad pages, 2 wrong usage or file, 3 the environment lacks something, 4 I/O failure, 130 "
      "interrupted.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help
    const auto chosen = app.get_subcommands();
    throw UsageError(fmt::format("{}; see slacktier-tier {}--help", error.what(),
                                 chosen.empty() ? "" : chosen.front()->get_name() + " "));
  }
  return commands.at(app.get_subcommands().front())();
}

}  // namespace

int main(int argc, char** argv) {
  return run_program("slacktier-tier", [&] { return run(argc, argv); });
}

#include "harness/cli/commands.hpp"
#include "platforms/program.hpp"
#include "reports/results.hpp"

int main(int argc, char** argv) {
  using namespace slacktier;
  const Invocation invocation{{argv, argv + argc}};
  return run_program("slacktier-harness", [&] {
    CLI::App app{"Runs and evaluates placements of LLM lookup tables on memory tiers"};
    app.set_version_flag("--version", tool_version());
    app.require_subcommand(1);
    std::function<int()> run;
    add_run_command(app, invocation, run);
    add_exposure_command(app, invocation, run);
    add_plan_command(app, invocation, run);
    add_misses_command(app, invocation, run);
    add_access_command(app, run);
    add_trace_command(app, run);
    add_vocab_command(app, run);
    add_report_command(app, run);
    add_seen_set_command(app, run);
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      return app.exit(error) == 0 ? 0 : 2;
    }
    return run();
  });
}

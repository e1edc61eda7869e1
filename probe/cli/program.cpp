#include "platforms/program.hpp"
#include "probe/program.hpp"

#include "probe/cli/commands.hpp"
#include "reports/results.hpp"

int slacktier::probe_program(int argc, char** argv) {
  const std::vector<std::string> words(argv, argv + argc);
  return run_program("slacktier-probe", [&] {
    CLI::App app{"Measures what a device and a model leave for reads beside decode"};
    app.set_version_flag("--version", tool_version());
    app.require_subcommand(1);
    std::function<int()> run;
    add_windows_command(app, words, run);
    add_both_command(app, words, run);
    add_compare_command(app, run);
    add_gates_command(app, words, run);
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      return app.exit(error) == 0 ? 0 : 2;
    }
    return run();
  });
}

// The subcommands of slacktier-harness, one file each.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <vector>

namespace slacktier {

// What the program was called with, for provenance.
struct Invocation {
  std::vector<std::string> argv;
};

// Adds the subcommand to `app`; when it is chosen, `run` is set to what it does (returning the exit code).
void add_run_command(CLI::App& app, const Invocation& invocation, std::function<int()>& run);
void add_exposure_command(CLI::App& app, const Invocation& invocation, std::function<int()>& run);
void add_plan_command(CLI::App& app, const Invocation& invocation, std::function<int()>& run);
void add_misses_command(CLI::App& app, const Invocation& invocation, std::function<int()>& run);
void add_access_command(CLI::App& app, std::function<int()>& run);
void add_trace_command(CLI::App& app, std::function<int()>& run);
void add_vocab_command(CLI::App& app, std::function<int()>& run);
void add_report_command(CLI::App& app, std::function<int()>& run);
void add_seen_set_command(CLI::App& app, std::function<int()>& run);

}  // namespace slacktier

// The subcommands of slacktier-probe, one file each.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace slacktier {

// Adds the subcommand to `app`; when it is chosen, `run` is set to what it does (returning the exit code). `argv` is for
// provenance and outlives the program's work.
void add_gates_command(CLI::App& app, const std::vector<std::string>& argv, std::function<int()>& run);
void add_windows_command(CLI::App& app, const std::vector<std::string>& argv, std::function<int()>& run);
void add_both_command(CLI::App& app, const std::vector<std::string>& argv, std::function<int()>& run);
void add_compare_command(CLI::App& app, std::function<int()>& run);

}  // namespace slacktier

// The frame of every program: exit codes, the one error line, and what Ctrl-C does.
#pragma once

#include <functional>

namespace slacktier {

// Exit codes that every program shares; the body returns `done` or `check_failed`.
struct ExitCode {
  static constexpr int done = 0;
  static constexpr int check_failed = 1;
  static constexpr int usage = 2;
  static constexpr int environment = 3;
  static constexpr int failure = 4;
  static constexpr int interrupted = 130;
};

// Runs `body` and returns its result, or the exit code of what it throws, after one line `NAME: error: ...` on stderr:
// UsageError and std::invalid_argument 2, EnvironmentError 3, Interrupted 130, all else 4. Standard output that could not be
// written is a failure, too (4). While it runs, the first SIGINT or SIGTERM sets interrupted(); a second one ends the
// process at once with 130.
int run_program(const char* name, const std::function<int()>& body);

// A SIGINT or SIGTERM arrived since run_program began. Long loops look at this between steps, save what they have, and throw
// Interrupted.
bool interrupted() noexcept;

// Throws Interrupted when interrupted().
void throw_if_interrupted();

// From here on SIGINT and SIGTERM only make interrupted() true, for a process that has no run_program of its own.
void take_over_signals();

}  // namespace slacktier

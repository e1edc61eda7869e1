// `windows` on an engine that runs by itself.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "probe/cli/windows_options.hpp"
#include "probe/windows.hpp"

namespace slacktier {

struct AttachArguments {
  std::string directory, load;
  int ranks = 1, delay_rank = -1;
  double timeout_s = 60;
};
void add_attach_options(CLI::App& command, AttachArguments& arguments);

// Throws UsageError for options that do not go with --attach (or need it).
void check_attach_arguments(const AttachArguments& attach, const WindowArguments& arguments, std::size_t batches);

// Probes the engine at `attach.directory`, with requests of its own when asked for. Throws what AttachedSteps does; a
// time-out says what the requests were doing, too.
MeasuredWindows attached_windows(const AttachArguments& attach, const WindowArguments& arguments, WindowOptions options,
                                 ProbeSubject& subject);

}  // namespace slacktier

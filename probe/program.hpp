// slacktier-probe as a function, for its own main and for `python -m slacktier.probe`.
#pragma once

namespace slacktier {

// Returns the exit code; prints what the program prints.
int probe_program(int argc, char** argv);

}  // namespace slacktier

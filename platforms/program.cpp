#include "platforms/program.hpp"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <new>
#include <string>

#include <fmt/format.h>

#include "platforms/error.hpp"

namespace slacktier {
namespace {

std::atomic<bool> signal_arrived{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may touch lock-free atomics only");

void on_signal(int) {
  if (signal_arrived.exchange(true)) ::_exit(ExitCode::interrupted);
}

// Takes SIGINT and SIGTERM over, and gives them back.
class SignalHandlers {
 public:
  SignalHandlers() {
    signal_arrived = false;
    struct sigaction action {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;  // the flag is what counts: no system call has to fail for it
    ::sigaction(SIGINT, &action, &interrupt_);
    ::sigaction(SIGTERM, &action, &terminate_);
  }
  ~SignalHandlers() {
    ::sigaction(SIGINT, &interrupt_, nullptr);
    ::sigaction(SIGTERM, &terminate_, nullptr);
  }
  SignalHandlers(const SignalHandlers&) = delete;
  SignalHandlers& operator=(const SignalHandlers&) = delete;

 private:
  struct sigaction interrupt_ {};
  struct sigaction terminate_ {};
};

// One line, whatever the message holds.
void print(const char* name, const char* kind, const std::string& message) {
  std::string line = fmt::format("{}: {}", name, kind);
  for (std::size_t i = 0; i < message.size(); ++i) {
    const bool breaks = message[i] == '\n' || message[i] == '\r';
    if (!breaks) {
      line += message[i];
    } else if (i + 1 < message.size() && line.back() != ' ') {
      line += ' ';
    }
  }
  line += '\n';
  std::fflush(stdout);  // results come before the error that ended them
  std::fwrite(line.data(), 1, line.size(), stderr);
}

int run_body(const char* name, const std::function<int()>& body) {
  try {
    const int result = body();
    errno = 0;
    const bool flushed = std::fflush(stdout) == 0;
    if (flushed && std::ferror(stdout) == 0) return result;
    throw std::system_error(errno == 0 ? EIO : errno, std::generic_category(), "writing standard output");
  } catch (const Interrupted&) {
    print(name, "interrupted", "");
    return ExitCode::interrupted;
  } catch (const CheckFailed& error) {
    print(name, "check failed: ", error.what());
    return ExitCode::check_failed;
  } catch (const std::invalid_argument& error) {  // UsageError is one
    print(name, "error: ", error.what());
    return ExitCode::usage;
  } catch (const EnvironmentError& error) {
    print(name, "error: ", error.what());
    return ExitCode::environment;
  } catch (const std::bad_alloc&) {
    print(name, "error: ", "out of memory");
  } catch (const std::exception& error) {
    print(name, "error: ", error.what());
  } catch (...) {
    print(name, "error: ", "an exception that is no std::exception");
  }
  return ExitCode::failure;
}

}  // namespace

int run_program(const char* name, const std::function<int()>& body) {
  const SignalHandlers handlers;
  return run_body(name, body);
}

void take_over_signals() { static const SignalHandlers handlers; }

bool interrupted() noexcept { return signal_arrived.load(std::memory_order_relaxed); }

void throw_if_interrupted() {
  if (interrupted()) throw Interrupted();
}

}  // namespace slacktier

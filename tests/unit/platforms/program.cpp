#include "platforms/program.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <new>
#include <stdexcept>
#include <string>

#include "platforms/error.hpp"
#include "tests/catch.hpp"

using namespace slacktier;

namespace {

struct Outcome {
  int code = -1;       // exit code, or -1 when a signal ended it
  std::string errors;  // what it wrote to stderr
};

// Runs `body` as the program "tool" in a child process.
Outcome run(const std::function<int()>& body, const char* standard_output = "/dev/null") {
  int ends[2];
  if (::pipe(ends) != 0) throw_errno("pipe");
  std::fflush(stdout);
  std::fflush(stderr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    ::dup2(::open(standard_output, O_WRONLY), STDOUT_FILENO);
    ::close(ends[0]);
    ::close(ends[1]);
    ::_exit(run_program("tool", body));
  }
  ::close(ends[1]);
  Outcome outcome;
  char buffer[512];
  ssize_t got = 0;
  while ((got = ::read(ends[0], buffer, sizeof buffer)) > 0) outcome.errors.append(buffer, static_cast<std::size_t>(got));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status)) outcome.code = WEXITSTATUS(status);
  return outcome;
}

void check(const std::function<int()>& body, int code, const std::string& errors) {
  const Outcome outcome = run(body);
  CHECK(outcome.code == code);
  CHECK(outcome.errors == errors);
}

}  // namespace

TEST_CASE("The body's result is the exit code", "[program]") {
  check([] { return ExitCode::done; }, 0, "");
  check([] { return ExitCode::check_failed; }, 1, "");
}

TEST_CASE("Exceptions end with their exit code and one line", "[program]") {
  check([]() -> int { throw UsageError("--ranks 0: give 1 or more"); }, 2, "tool: error: --ranks 0: give 1 or more\n");
  check([]() -> int { throw std::invalid_argument("stoi"); }, 2, "tool: error: stoi\n");
  check([]() -> int { throw EnvironmentError("no io_uring"); }, 3, "tool: error: no io_uring\n");
  check([]() -> int { throw DeviceError("page 7 of /x"); }, 4, "tool: error: page 7 of /x\n");
  check(
      []() -> int {
        errno = ENOSPC;
        throw_errno("write /x");
      },
      4, "tool: error: write /x: No space left on device\n");
  check([]() -> int { throw std::logic_error("odd"); }, 4, "tool: error: odd\n");
  check([]() -> int { throw std::bad_alloc(); }, 4, "tool: error: out of memory\n");
  check([]() -> int { throw 1; }, 4, "tool: error: an exception that is no std::exception\n");
  check([]() -> int { throw Interrupted(); }, 130, "tool: interrupted\n");
}

TEST_CASE("A message of several lines becomes one", "[program]") {
  check([]() -> int { throw UsageError("first\nsecond\r\nthird\n"); }, 2, "tool: error: first second third\n");
}

TEST_CASE("Standard output that cannot be written is a failure", "[program]") {
  const Outcome outcome = run(
      [] {
        std::printf("result\n");
        return ExitCode::done;
      },
      "/dev/full");
  CHECK(outcome.code == 4);
  CHECK(outcome.errors == "tool: error: writing standard output: No space left on device\n");
}

TEST_CASE("The first signal asks, and the body ends in its own time", "[program]") {
  for (const int signal : {SIGINT, SIGTERM}) {
    check(
        [signal] {
          throw_if_interrupted();
          if (interrupted()) return 9;
          ::raise(signal);
          if (!interrupted()) return 9;
          std::fputs("saved\n", stderr);
          throw_if_interrupted();
          return 9;
        },
        130, "saved\ntool: interrupted\n");
  }
}

TEST_CASE("The second signal ends the process at once", "[program]") {
  check(
      [] {
        ::raise(SIGINT);
        ::raise(SIGTERM);
        return 9;
      },
      130, "");
}

TEST_CASE("Signal handlers are given back, and the next run begins anew", "[program]") {
  struct sigaction before {};
  struct sigaction after {};
  REQUIRE(::sigaction(SIGTERM, nullptr, &before) == 0);
  CHECK(run_program("tool", [] {
          ::raise(SIGTERM);
          return interrupted() ? 1 : 0;
        }) == 1);
  CHECK(run_program("tool", [] { return interrupted() ? 1 : 0; }) == 0);
  REQUIRE(::sigaction(SIGTERM, nullptr, &after) == 0);
  CHECK(before.sa_handler == after.sa_handler);
}

#include "platforms/child_process.hpp"

#include <unistd.h>

#include <csignal>
#include <stdexcept>

#include "platforms/clock.hpp"
#include "platforms/error.hpp"
#include "platforms/program.hpp"
#include "tests/catch.hpp"

using namespace slacktier;

namespace {

// Works until it is told to end.
std::string work(const ChildProcess::Link& link) {
  link.announce();
  link.announce();
  while (!interrupted()) monotonic_clock().sleep_until(monotonic_clock().now() + 1'000'000);
  return "worked in " + std::to_string(::getpid());
}

}  // namespace

TEST_CASE("A child works until it is told to end, and reports", "[child_process]") {
  ChildProcess one("one", work), two("two", work);
  one.wait_until_begun();
  two.wait_until_begun();
  const std::string first = one.stop(), second = two.stop();
  CHECK(first.find("worked in ") == 0);
  CHECK(first != second);
  CHECK(first != "worked in " + std::to_string(::getpid()));
}

TEST_CASE("A child that fails, is killed or says nothing is an error with its name", "[child_process]") {
  ChildProcess failing("tenant 2",
                       [](const ChildProcess::Link&) -> std::string { throw std::runtime_error("no such disk"); });
  CHECK_THROWS_WITH(failing.wait_until_begun(), contains_text("tenant 2: no such disk"));
  ChildProcess later("tenant 3", [](const ChildProcess::Link& link) -> std::string {
    link.announce();
    throw std::runtime_error("went away");
  });
  later.wait_until_begun();
  CHECK_THROWS_WITH(later.stop(), contains_text("tenant 3: went away"));
  ChildProcess killed("tenant 4", [](const ChildProcess::Link& link) -> std::string {
    link.announce();
    ::raise(SIGKILL);
    return "";
  });
  killed.wait_until_begun();
  CHECK_THROWS_WITH(killed.stop(), contains_text("tenant 4 was ended by signal 9"));
}

TEST_CASE("A child that is not wanted any more is ended", "[child_process]") {
  const ChildProcess forgotten("forgotten", [](const ChildProcess::Link&) -> std::string {
    for (;;) ::pause();
  });
}

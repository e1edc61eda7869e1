#include "platforms/progress.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "platforms/executor.hpp"
#include "tests/catch.hpp"

using namespace slacktier;

namespace {

constexpr Nanos kSecond = 1'000'000'000;

class HandClock final : public Clock {
 public:
  Nanos now() const override { return time; }
  void sleep_until(Nanos) const override {}
  Nanos time = 5 * kSecond;
};

struct Screen {
  HandClock clock;
  std::vector<std::string> writes;
  ProgressOutput output(bool terminal, int columns = 80) {
    return {terminal, columns, [this](std::string_view text) { writes.emplace_back(text); }, &clock};
  }
};

}  // namespace

TEST_CASE("Progress text tells share, amount, rate and time left", "[progress]") {
  constexpr std::uint64_t gib = std::uint64_t{1} << 30;
  CHECK(progress_text(gib, 4 * gib, gib, 2 * kSecond, ProgressUnit::bytes) == " 25%  1.0/4.0 GiB  512 MiB/s  ETA 7 s");
  CHECK(progress_text(30, 60, 30, 10 * kSecond, ProgressUnit::steps) == " 50%  30/60  3.00/s  ETA 11 s");
  CHECK(progress_text(60, 60, 60, 10 * kSecond, ProgressUnit::steps) == "100%  60/60  6.00/s");
  CHECK(progress_text(59'999, 60'000, 59'999, 10 * kSecond, ProgressUnit::steps).substr(0, 4) == " 99%");
  CHECK(progress_text(0, 60, 0, 0, ProgressUnit::steps) == "  0%  0/60");
  CHECK(progress_text(7, 0, 7, kSecond, ProgressUnit::steps) == "7  7.00/s");
  CHECK(progress_text(1, UINT64_MAX, 1, kSecond, ProgressUnit::steps) == "  0%  1/18446744073709551615  1.00/s");
}

TEST_CASE("What an earlier run did does not count in the rate", "[progress]") {
  Screen screen;
  Progress progress("staging", 100, ProgressUnit::steps, screen.output(false), 80);
  screen.clock.time += 10 * kSecond;
  progress.advance(10);
  CHECK(progress.done() == 90);
  REQUIRE(screen.writes.size() == 1);
  CHECK(screen.writes[0] == "staging:  90%  90/100  1.00/s  ETA 11 s\n");
}

TEST_CASE("Without a terminal there is a line every ten seconds", "[progress]") {
  Screen screen;
  {
    Progress progress("run", 100, ProgressUnit::steps, screen.output(false));
    for (int i = 0; i < 50; ++i) {
      screen.clock.time += kSecond / 2;
      progress.advance();
    }
    CHECK(screen.writes.size() == 2);
    progress.finish();
    progress.advance();
    progress.finish();
  }
  REQUIRE(screen.writes.size() == 3);
  CHECK(screen.writes[2] == "run:  50%  50/100  2.00/s  ETA 26 s\n");
}

TEST_CASE("A short job without a terminal, and a quiet one, write nothing", "[progress]") {
  Screen screen;
  {
    Progress progress("run", 2, ProgressUnit::steps, screen.output(false));
    progress.advance(2);
  }
  CHECK(screen.writes.empty());
  Progress quiet("run", 2, ProgressUnit::steps, stderr_progress(true));
  quiet.advance(2);
  CHECK(quiet.done() == 2);
}

TEST_CASE("On a terminal a bar is redrawn in place, ten times a second at most", "[progress]") {
  Screen screen;
  {
    Progress progress("run", 1'000, ProgressUnit::steps, screen.output(true));
    for (int i = 0; i < 1'000; ++i) {
      screen.clock.time += kSecond / 1'000;
      progress.advance();
    }
  }
  CHECK(screen.writes.size() == 12);  // ten, the last state, the line's end
  CHECK(screen.writes.front().substr(0, 6) == "\rrun [");
  CHECK(screen.writes[10].find("[========================================] 100%  1000/1000  1000/s\x1b[K") !=
        std::string::npos);
  CHECK(screen.writes.back() == "\n");
}

TEST_CASE("A narrow terminal gets a shorter line, never a second one", "[progress]") {
  for (const int columns : {1, 10, 30, 45}) {
    Screen screen;
    Progress progress("a long label", 1'000, ProgressUnit::steps, screen.output(true, columns));
    screen.clock.time += kSecond;
    progress.advance(500);
    REQUIRE(screen.writes.size() == 1);
    const std::size_t visible = screen.writes[0].size() - 4;  // without \r and ESC [ K
    CHECK(visible <= static_cast<std::size_t>(std::max(columns - 1, 1)));
  }
}

TEST_CASE("Several threads may advance", "[progress]") {
  std::atomic<int> writes{0};
  ProgressOutput output;
  output.terminal = true;
  output.write = [&](std::string_view) { ++writes; };
  Progress progress("run", 40'000, ProgressUnit::steps, output);
  std::unique_ptr<Task> tasks[4];
  for (auto& task : tasks) {
    task = thread_executor().start("worker", [&] {
      for (int i = 0; i < 10'000; ++i) progress.advance();
    });
  }
  for (auto& task : tasks) task->join();
  progress.finish();
  CHECK(progress.done() == 40'000);
  CHECK(writes >= 3);
}

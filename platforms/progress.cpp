#include "platforms/progress.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>

#include <fmt/format.h>

#include "platforms/futex.hpp"
#include "platforms/program.hpp"
#include "platforms/quantity.hpp"

namespace slacktier {
namespace {

constexpr Nanos kRedraw = kNanosPerSecond / 10;  // terminal
constexpr Nanos kLine = 10 * kNanosPerSecond;    // anything else

std::string rate_text(double per_second, ProgressUnit unit) {
  if (unit == ProgressUnit::bytes) return bytes_text(static_cast<std::uint64_t>(per_second)) + "/s";
  return per_second < 10 ? fmt::format("{:.2f}/s", per_second) : fmt::format("{:.0f}/s", per_second);
}

}  // namespace

ProgressOutput stderr_progress(bool quiet) {
  ProgressOutput output;
  if (quiet) return output;
  output.terminal = ::isatty(STDERR_FILENO) == 1;
  winsize size{};
  if (output.terminal && ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) output.columns = size.ws_col;
  output.write = [](std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
  };
  return output;
}

std::string progress_text(std::uint64_t done, std::uint64_t total, std::uint64_t since_start, Nanos elapsed,
                          ProgressUnit unit) {
  const double seconds = static_cast<double>(elapsed) / static_cast<double>(kNanosPerSecond);
  const double rate = seconds > 0 ? static_cast<double>(since_start) / seconds : 0;
  std::string text;
  if (total == 0) {
    text = unit == ProgressUnit::bytes ? bytes_text(done) : std::to_string(done);
  } else {
    // Rounded down: 100% means done.
    const auto percent =
        static_cast<int>(100.0L * static_cast<long double>(std::min(done, total)) / static_cast<long double>(total));
    text = fmt::format("{:3}%  {}", percent,
                       unit == ProgressUnit::bytes ? bytes_of_text(done, total) : fmt::format("{}/{}", done, total));
  }
  if (rate > 0) text += "  " + rate_text(rate, unit);
  if (rate > 0 && done < total) {
    const double left = static_cast<double>(total - done) / rate;
    // A rate of the first moments can promise aeons: say nothing then.
    if (left < 100.0 * 3600) text += "  ETA " + duration_text(static_cast<std::uint64_t>(left + 1));
  }
  return text;
}

Progress::Progress(std::string label, std::uint64_t total, ProgressUnit unit, ProgressOutput output, std::uint64_t already)
    : label_(std::move(label)),
      total_(total),
      unit_(unit),
      output_(std::move(output)),
      already_(already),
      begin_(output_.clock->now()),
      done_(already),
      next_(begin_ + (output_.terminal ? 0 : kLine)) {}

Progress::~Progress() {
  try {
    finish();
  } catch (...) {  // a bar is not worth an exception in a destructor
  }
}

void Progress::advance(std::uint64_t amount) {
  done_.fetch_add(amount, std::memory_order_relaxed);
  if (!output_.write) return;
  const Nanos now = output_.clock->now();
  if (now < next_.load(std::memory_order_relaxed)) return;
  const std::unique_lock lock(drawing_, std::try_to_lock);
  if (!lock.owns_lock() || finished_ || now < next_.load(std::memory_order_relaxed)) return;
  next_.store(now + (output_.terminal ? kRedraw : kLine), std::memory_order_relaxed);
  draw(now);
}

void Progress::finish() {
  if (!output_.write) return;
  const std::lock_guard lock(drawing_);
  if (finished_) return;
  finished_ = true;
  // A job that was over before its first line needs none; a bar is completed and left standing.
  if (!drawn_) return;
  draw(output_.clock->now());
  if (output_.terminal) output_.write("\n");
}

void Progress::draw(Nanos now) {
  drawn_ = true;
  const std::uint64_t done = this->done();
  const std::string text = progress_text(done, total_, done - already_, now - begin_, unit_);
  if (!output_.terminal) return output_.write(fmt::format("{}: {}\n", label_, text));
  std::string line = label_ + " ";
  const int room = output_.columns - static_cast<int>(line.size() + text.size()) - 4;
  if (total_ != 0 && room >= 10) {
    const int width = std::min(room, 40);
    const auto full =
        static_cast<int>(static_cast<long double>(std::min(done, total_)) * width / static_cast<long double>(total_));
    line += fmt::format("[{:=<{}}{: <{}}] ", "", full, "", width - full);
  }
  line += text;
  line.resize(std::min(line.size(), static_cast<std::size_t>(std::max(output_.columns - 1, 1))));
  output_.write(fmt::format("\r{}\x1b[K", line));
}

std::function<void(std::uint64_t, std::uint64_t)> watch_progress(const std::string& label, ProgressUnit unit, bool quiet) {
  struct State {
    std::unique_ptr<Progress> progress;
    std::uint64_t shown = 0;
  };
  const auto state = std::make_shared<State>();
  return [=](std::uint64_t done, std::uint64_t total) {
    if (!state->progress) {  // what is done at the first call was there before
      state->progress = std::make_unique<Progress>(label, total, unit, stderr_progress(quiet), done);
      state->shown = done;
    }
    state->progress->advance(done - state->shown);
    state->shown = done;
    throw_if_interrupted();
  };
}

}  // namespace slacktier

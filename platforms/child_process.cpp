#include "platforms/child_process.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <exception>

#include <fmt/format.h>

#include "platforms/error.hpp"
#include "platforms/program.hpp"

namespace slacktier {
namespace {

// What a child sends: one byte when it has begun, one that says whether its report or its error follows, the text.
constexpr char begun = 'b', report = 'r', failure = 'f';

void send(int descriptor, const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t written = ::write(descriptor, text.data() + at, text.size() - at);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // the owner is gone
    at += static_cast<std::size_t>(written);
  }
}

[[noreturn]] void run_child(pid_t owner, int descriptor, const ChildProcess::Link& link,
                            const std::function<std::string(const ChildProcess::Link&)>& body) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // never outlives its owner
  if (::getppid() != owner) ::_exit(1);
  ::setpgid(0, 0);  // a terminal's interrupt is for the owner, which then asks for the report
  std::signal(SIGPIPE, SIG_IGN);
  take_over_signals();
  // _exit: what the owner would flush or clean up is the owner's.
  try {
    send(descriptor, report + body(link));
    ::_exit(0);
  } catch (const std::exception& error) {
    send(descriptor, failure + std::string(error.what()));
  } catch (...) {
    send(descriptor, failure + std::string("an exception that is no std::exception"));
  }
  ::_exit(1);
}

}  // namespace

void ChildProcess::Link::announce() const {
  if (announced_) return;
  announced_ = true;
  send(descriptor_, std::string(1, begun));
}

ChildProcess::ChildProcess(std::string name, const std::function<std::string(const Link&)>& body) : name_(std::move(name)) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw_errno("pipe for " + name_);
  std::fflush(nullptr);  // or what is buffered would be written twice
  const pid_t owner = ::getpid();
  process_ = ::fork();
  if (process_ < 0) {
    const int error = errno;
    ::close(ends[0]);
    ::close(ends[1]);
    throw std::system_error(error, std::generic_category(), "starting " + name_);
  }
  if (process_ == 0) {
    ::close(ends[0]);
    run_child(owner, ends[1], Link(ends[1]), body);
  }
  ::close(ends[1]);
  from_child_ = ends[0];
}

ChildProcess::~ChildProcess() {
  if (process_ > 0) {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  if (from_child_ >= 0) ::close(from_child_);
}

void ChildProcess::wait_until_begun() {
  char byte = 0;
  ssize_t got;
  while ((got = ::read(from_child_, &byte, 1)) < 0 && errno == EINTR) {
  }
  if (got == 1 && byte == begun) return;
  if (got == 1) received_ = byte;
  end();
  throw DeviceError(name_ + " ended before it had begun");
}

std::string ChildProcess::stop() {
  if (process_ > 0) ::kill(process_, SIGINT);
  return end();
}

std::string ChildProcess::end() {
  char buffer[4096];
  for (;;) {
    const ssize_t got = ::read(from_child_, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    received_.append(buffer, static_cast<std::size_t>(got));
  }
  int status = 0;
  while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
  std::string_view text = received_;
  if (!text.empty() && text.front() == begun) text.remove_prefix(1);
  if (!text.empty() && text.front() == failure) throw DeviceError(fmt::format("{}: {}", name_, text.substr(1)));
  if (text.empty() || text.front() != report)
    throw DeviceError(WIFSIGNALED(status) ? fmt::format("{} was ended by signal {}", name_, WTERMSIG(status))
                                          : fmt::format("{} ended without a report", name_));
  return std::string(text.substr(1));
}

}  // namespace slacktier

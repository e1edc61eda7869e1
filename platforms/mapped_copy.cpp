#include "platforms/mapped_copy.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstring>

namespace slacktier {
#ifdef __SANITIZE_THREAD__
// The thread sanitizer keeps such signals to itself; the kernel, asked to copy, answers a lost page with an error.
bool copy_from_mapping(void* to, const void* from, std::size_t bytes) noexcept {
  const iovec local{to, bytes}, remote{const_cast<void*>(from), bytes};
  return ::process_vm_readv(::getpid(), &local, 1, &remote, 1, 0) == static_cast<ssize_t>(bytes);
}
#else
namespace {

// Of the copy that this thread is in; volatile, since only the handler reads it.
thread_local sigjmp_buf* volatile way_out = nullptr;
struct sigaction before {};

// The signal comes on the thread that touched the page, in the middle of its copy.
void on_bus_error(int number, siginfo_t* info, void* context) {
  if (way_out != nullptr) siglongjmp(*way_out, 1);
  if ((before.sa_flags & SA_SIGINFO) != 0) return before.sa_sigaction(number, info, context);
  if (before.sa_handler == SIG_IGN) return;
  if (before.sa_handler != SIG_DFL) return before.sa_handler(number);
  ::signal(SIGBUS, SIG_DFL);  // the access is repeated and ends the process
}

bool install() {
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  // Not masked while it runs: the jump out of it restores no mask.
  action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  return ::sigaction(SIGBUS, &action, &before) == 0;
}

}  // namespace

bool copy_from_mapping(void* to, const void* from, std::size_t bytes) noexcept {
  [[maybe_unused]] static const bool installed = install();
  sigjmp_buf here;
  if (sigsetjmp(here, 0) != 0) {
    way_out = nullptr;
    return false;
  }
  way_out = &here;
  // The copy stays between the two fences.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  std::memcpy(to, from, bytes);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  way_out = nullptr;
  return true;
}
#endif

}  // namespace slacktier

// A table's server on this machine, on a thread of the test.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <memory>
#include <string>

#include "platforms/error.hpp"
#include "platforms/executor.hpp"
#include "tests/unit/tier/small_table.hpp"
#include "tier/remote_image.hpp"
#include "tier/server.hpp"

namespace slacktier::testing {

inline std::string write_key(const ScratchFolder& folder, const std::string& name = "key",
                             const std::string& key = "0123456789abcdef0123456789abcdef") {
  const std::string path = folder.write(name, key + "\n");
  REQUIRE(::chmod(path.c_str(), 0600) == 0);
  return path;
}

class RunningServer {
 public:
  RunningServer(const ServedTable& table, const std::string& key_file, ServerOptions options = {}, bool returning = false) {
    if (options.listen.empty()) options.listen = "127.0.0.1:0";
    options.key = load_key(key_file);
    // Where another process has taken the port of a server that is to come back, it will give it up again.
    const Nanos deadline = monotonic_clock().now() + (returning ? 20'000'000'000 : 0);
    while (!server_) {
      try {
        server_ = std::make_unique<TableServer>(table, options);
      } catch (const EnvironmentError&) {
        if (monotonic_clock().now() >= deadline) throw;
        monotonic_clock().sleep_until(monotonic_clock().now() + 50'000'000);
      }
    }
    address = server_->address();
    task_ = thread_executor().start("server", [this] { server_->run([this] { return stop_.load(); }); });
  }
  ~RunningServer() { stop(); }
  void stop() {
    stop_ = true;
    if (task_) task_->join();
    task_.reset();
    server_.reset();
  }
  ServerMetrics metrics() const { return server_->metrics(); }
  // Waits for what another thread is about to bring about; a minute at most.
  bool await(const std::function<bool(const ServerMetrics&)>& condition) const {
    const Nanos deadline = monotonic_clock().now() + 60'000'000'000;
    while (!condition(metrics()) && monotonic_clock().now() < deadline)
      monotonic_clock().sleep_until(monotonic_clock().now() + 5'000'000);
    return condition(metrics());
  }

  std::string address;

 private:
  std::atomic<bool> stop_{false};
  std::unique_ptr<TableServer> server_;
  std::unique_ptr<Task> task_;
};

}  // namespace slacktier::testing

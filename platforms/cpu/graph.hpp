// A captured graph of the cpu device. The origin's branch runs on the launching stream, every other on a thread of the
// graph.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "platforms/cpu/capture.hpp"
#include "platforms/cpu/runner.hpp"
#include "platforms/device.hpp"
#include "platforms/executor.hpp"

namespace slacktier::cpu {

// Shared by the CpuGraph and the replay that may be queued or running when that is destroyed.
class GraphBody final : public Replayable {
 public:
  GraphBody(std::shared_ptr<DeviceState> device, std::vector<Capture::Branch> branches);
  ~GraphBody() override;

  // Takes the graph for one replay; false when one is queued or running.
  bool take() noexcept;
  void replay(Runner& origin) override;
  // Drops a queued replay, stops a running one, waits until none runs, and ends the threads.
  void close() noexcept;
  // A launch that failed after take() gives the graph back.
  void give_back() noexcept;

  const std::shared_ptr<DeviceState>& device() const { return device_; }
  std::size_t host_functions() const { return host_functions_; }
  std::size_t operations() const { return operations_; }

 private:
  // One branch beside the origin's. Its first operation is the wait by which its stream joined the capture; between
  // replays its thread sleeps there.
  struct Side {
    Side(const std::shared_ptr<DeviceState>& device, const std::string& name, std::vector<Operation> list)
        : runner(device, name), operations(std::move(list)) {}
    Runner runner;
    std::vector<Operation> operations;
    Point done;
    std::unique_ptr<Task> thread;
  };
  void work(Side& side) noexcept;
  void stop_replay() noexcept;

  const std::shared_ptr<DeviceState> device_;
  std::vector<Operation> origin_;
  std::vector<std::unique_ptr<Side>> sides_;
  std::size_t host_functions_ = 0;
  std::size_t operations_ = 0;
  std::uint32_t sequence_ = 0;        // of the current replay; only the launching stream's thread uses it
  std::atomic<std::uint32_t> state_;  // what goes on, and whether the graph is closed
  std::atomic<bool> stop_{false};     // the current replay is to be skipped
  std::atomic<bool> ending_{false};   // the threads are to end
};

class CpuGraph final : public Graph {
 public:
  explicit CpuGraph(std::shared_ptr<GraphBody> body) : body_(std::move(body)) {}
  ~CpuGraph() override { body_->close(); }
  void launch(Stream& stream) override;
  std::size_t host_functions() const override { return body_->host_functions(); }
  std::size_t operations() const override { return body_->operations(); }

 private:
  const std::shared_ptr<GraphBody> body_;
};

}  // namespace slacktier::cpu

// A capture in progress: operations by branch, one branch a stream.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "platforms/cpu/operation.hpp"
#include "platforms/cpu/stream.hpp"

namespace slacktier::cpu {

// All members are guarded by the device's mutex.
class Capture {
 public:
  struct Branch {
    CpuStream* stream = nullptr;
    std::string name;
    std::vector<Operation> operations;
    std::size_t work = 0;  // operations that are no edges
    // By branch: how many of its work operations happen before the next one of this branch. May be shorter than the number
    // of branches; what is missing is 0.
    std::vector<std::size_t> before;
  };

  // Begins at `origin`, which becomes branch 0.
  static std::shared_ptr<Capture> begin(CpuStream& origin);

  Operation& add(std::size_t branch, OperationKind kind);
  void record(CpuStream& stream, CpuEvent& event);
  // `stream` may be outside the capture so far; then it joins.
  static void wait(CpuStream& stream, CpuEvent& event);
  // Releases all streams. Throws UsageError when one was not joined back to the origin.
  std::vector<Branch> end();
  // A stream of the capture goes away: all are released, and the origin's end_capture throws.
  void abandon(CpuStream& gone);

 private:
  void release();

  std::weak_ptr<Capture> self_;
  std::vector<Branch> branches_;
  std::string gone_;  // the stream that was destroyed
};

}  // namespace slacktier::cpu

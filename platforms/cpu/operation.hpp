// One operation of a stream, as queued or as captured.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "platforms/cpu/point.hpp"
#include "platforms/post.hpp"
#include "platforms/signal.hpp"

namespace slacktier::cpu {

class Replayable;

enum class OperationKind : std::uint8_t {
  kernel,
  compute,
  copy,
  fill,
  host_function,
  record,
  wait,
  await,
  reset,
  post,
  timestamp,
  wait_until,
  replay,
};

// Edges order work and are none themselves: a graph counts operations without them, as GPU graphs do.
inline bool is_edge(OperationKind kind) { return kind == OperationKind::record || kind == OperationKind::wait; }

// Fields that a kind does not name are unused by it. A slot is reused by clear(), which keeps the memory of the arguments.
struct Operation {
  struct alignas(64) Chunk {
    std::byte bytes[64];
  };

  OperationKind kind = OperationKind::compute;
  std::uint8_t value = 0;                        // fill
  std::uint32_t sequence = 0;                    // record, wait outside graphs
  void (*kernel)(void*, const void*) = nullptr;  // kernel
  const std::string* kernel_name = nullptr;      // kernel; lives in the device
  std::vector<Chunk> arguments;                  // kernel; aligned for any argument struct
  void (*function)(void*) = nullptr;             // host_function
  void* target = nullptr;                        // copy, fill: destination; host_function: user; timestamp: where to
  const void* source = nullptr;                  // copy; wait_until: since
  const std::int64_t* period = nullptr;          // wait_until
  std::size_t bytes = 0;                         // copy, fill
  Nanos duration = 0;                            // compute
  Signal* signal = nullptr;                      // await, reset
  Post* post = nullptr;                          // post
  std::shared_ptr<Point> point;                  // record, wait
  std::shared_ptr<Replayable> graph;             // replay
  Nanos queued = 0;                              // when the caller queued it; 0 in a graph

  void set_arguments(const void* from, std::size_t size) {
    arguments.resize((size + sizeof(Chunk) - 1) / sizeof(Chunk));
    if (size != 0) std::memcpy(arguments.data(), from, size);
  }

  void clear() {
    std::vector<Chunk> kept = std::move(arguments);
    *this = Operation();
    arguments = std::move(kept);
    arguments.clear();
  }
};

}  // namespace slacktier::cpu

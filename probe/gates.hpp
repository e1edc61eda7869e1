// What it costs to make a stream wait for the host, and the host for a stream, measured on the device at hand.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "platforms/device.hpp"
#include "reports/results.hpp"

namespace slacktier {

struct GateProbe {
  std::string device = "cpu";
  std::uint32_t samples = 1000;  // of each latency; a p99 takes 662
  std::uint32_t idle_nodes = 40, idle_steps = 100;
  Nanos layer_time = 230'000;            // of each of the idle_nodes layers of a step
  Nanos closed = 1'000'000;              // how long a gate stays closed while others launch
  std::function<bool()> stop = nullptr;  // asked between samples; then Interrupted is thrown
};

// Times in microseconds.
struct GateCost {
  std::string gate;
  bool supported = false;
  std::string reason;                  // why not
  std::vector<double> dispatch;        // the stream reaches the node until host code runs; only where host code waits
  std::vector<double> release;         // the host publishes until it sees what the next operation of the stream wrote
  std::vector<double> launch_blocked;  // launch and completion of a kernel on another stream while the gate is closed
  std::optional<double> idle_step;     // what idle_nodes open gates add to a step
};

struct GateCosts {
  DeviceFacts device;
  std::vector<GateCost> gates;
  std::vector<double> host_function;  // a stream reaches a host function until it runs
  std::vector<double> post;           // a stream reaches a post until a host that looks has seen the word
  bool callbacks_serialised = false;  // while one host function runs, one of another stream waits
  std::uint32_t idle_nodes = 0;
  std::string default_gate, why;
};

// Measures all gates of the device. Throws UsageError, EnvironmentError, DeviceError, Interrupted.
GateCosts measure_gates(const GateProbe& probe);

// A `gates` file without provenance.
Envelope gates_envelope(const GateCosts& costs, const GateProbe& probe);

}  // namespace slacktier

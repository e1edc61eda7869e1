#include "probe/gates.hpp"

#include <atomic>
#include <cstdint>
#include <new>
#include <random>

#include <fmt/format.h>

#include "platforms/error.hpp"
#include "platforms/executor.hpp"
#include "reports/samples.hpp"

namespace slacktier {
namespace {

constexpr Nanos patience = 5'000'000'000;
constexpr Nanos busy_callback = 5'000'000;

double microseconds(Nanos time) { return static_cast<double>(time) / 1e3; }

// One opened device with the memory that its measurements share.
class Measure {
 public:
  Measure(const GateProbe& probe, const std::string& gate)
      : probe_(probe), device_(open(probe, gate)), memory_(device_->allocate_host(4096)) {
    auto* at = static_cast<std::byte*>(memory_->host());
    signal_ = new (at) Signal;
    arrived_ = new (at + 64) Post;
    passed_ = new (at + 128) Post;
    stamps_ = reinterpret_cast<std::int64_t*>(at + 192);
    main_ = device_->create_stream("gates-main");
    other_ = device_->create_stream("gates-other");
  }

  DeviceFacts facts() const { return device_->facts(); }

  // A stream waits at the closed gate; the host publishes and looks for what comes behind the gate.
  std::vector<double> release() {
    device_->begin_capture(*main_);
    main_->post(*arrived_);
    main_->await(*signal_);
    main_->post(*passed_);
    main_->reset(*signal_);
    const auto graph = device_->end_capture(*main_);
    std::mt19937_64 random(1);
    return sample([&] {
      arrive(*graph);
      // Long enough for the stream to be at the gate, and never in step with it.
      spin(20'000 + static_cast<Nanos>(random() % 60'000));
      const Nanos begin = clock_.now();
      signal_->publish(epoch_, StepStatus::ok);
      see(*passed_);
      const Nanos end = clock_.now();
      main_->synchronize();
      return microseconds(end - begin);
    });
  }

  // While the gate is closed, another stream is given a kernel and waited for. The gate opens after probe.closed whatever
  // happens, so what is blocked for good shows as that time.
  std::vector<double> launch_blocked() {
    device_->begin_capture(*main_);
    main_->post(*arrived_);
    main_->await(*signal_);
    main_->reset(*signal_);
    const auto graph = device_->end_capture(*main_);
    Doorbell closed, opened;
    std::atomic<bool> over{false};
    const auto opener = thread_executor().start("gate-opener", [&] {
      for (std::uint32_t seen = 0; (seen = closed.wait(seen)) > 0 && !over.load();) {
        clock_.sleep_until(clock_.now() + probe_.closed);
        signal_->publish(epoch_, StepStatus::ok);
        opened.ring();
      }
    });
    const auto end_opener = [&] {
      over.store(true);
      closed.ring();
      opener->join();
    };
    try {
      std::uint32_t count = 0;
      auto samples = sample([&] {
        arrive(*graph);
        closed.ring();
        const Nanos begin = clock_.now();
        other_->timestamp(stamps_ + 2);
        other_->synchronize();
        const Nanos end = clock_.now();
        while (opened.count() == count) opened.wait(count);
        count = opened.count();
        main_->synchronize();
        return microseconds(end - begin);
      });
      end_opener();
      return samples;
    } catch (...) {
      end_opener();
      throw;
    }
  }

  // The stream is busy before, so that nothing of its start is measured.
  std::vector<double> host_function() {
    std::atomic<Nanos> ran{0};
    device_->begin_capture(*main_);
    main_->compute(20'000);
    main_->timestamp(stamps_);
    main_->host_function([](void* at) { static_cast<std::atomic<Nanos>*>(at)->store(monotonic_clock().now()); }, &ran);
    const auto graph = device_->end_capture(*main_);
    return sample([&] {
      graph->launch(*main_);
      main_->synchronize();
      return microseconds(ran.load() - device_->host_time(stamps_[0]));
    });
  }

  std::vector<double> post() {
    device_->begin_capture(*main_);
    main_->compute(20'000);
    main_->timestamp(stamps_);
    main_->post(*passed_);
    const auto graph = device_->end_capture(*main_);
    return sample([&] {
      passed_->clear();
      graph->launch(*main_);
      see(*passed_);
      const Nanos seen = clock_.now();
      main_->synchronize();
      return microseconds(seen - device_->host_time(stamps_[0]));
    });
  }

  bool callbacks_serialised() {
    struct Busy {
      std::atomic<Nanos> began{0}, ended{0};
    } busy;
    std::atomic<Nanos> second{0};
    const auto occupy = [](void* user) {
      auto& mine = *static_cast<Busy*>(user);
      const Clock& clock = monotonic_clock();
      mine.began.store(clock.now());
      while (clock.now() < mine.began.load() + busy_callback) {
      }
      mine.ended.store(clock.now());
    };
    int serialised = 0;
    constexpr int rounds = 5;
    for (int round = 0; round < rounds; ++round) {
      busy.began.store(0);
      main_->host_function(occupy, &busy);
      const Nanos begin = clock_.now();
      while (busy.began.load() == 0 && clock_.now() < begin + patience) {
      }
      other_->host_function([](void* at) { static_cast<std::atomic<Nanos>*>(at)->store(monotonic_clock().now()); }, &second);
      main_->synchronize();
      other_->synchronize();
      serialised += second.load() >= busy.ended.load();
    }
    return serialised > rounds / 2;
  }

  // A step of idle_nodes layers, with and without an open gate before each, in turn. Difference of medians.
  double idle_step() {
    signal_->word.store(1);
    const auto step = [&](bool gates) {
      device_->begin_capture(*main_);
      main_->timestamp(stamps_);
      for (std::uint32_t k = 0; k < probe_.idle_nodes; ++k) {
        if (gates) main_->await(*signal_);
        main_->compute(probe_.layer_time);
      }
      main_->timestamp(stamps_ + 1);
      return device_->end_capture(*main_);
    };
    const auto with = step(true), without = step(false);
    std::vector<double> times[2];
    for (std::uint32_t s = 0; s < probe_.idle_steps + 2; ++s)
      for (const bool gates : {true, false}) {
        look_for_stop();
        (gates ? with : without)->launch(*main_);
        main_->synchronize();
        if (s >= 2) times[gates].push_back(microseconds(stamps_[1] - stamps_[0]));
      }
    signal_->word.store(0);
    return percentile(times[1], 0.5) - percentile(times[0], 0.5);
  }

 private:
  static std::unique_ptr<Device> open(const GateProbe& probe, const std::string& gate) {
    DeviceOptions options;
    options.gate = gate;
    return open_device(probe.device, options);
  }

  void look_for_stop() const {
    if (probe_.stop && probe_.stop()) throw Interrupted();
  }

  // The first tenth warms up.
  template <class Once>
  std::vector<double> sample(const Once& once) {
    std::vector<double> samples;
    const std::uint32_t warm = probe_.samples / 10 + 1;
    for (std::uint32_t i = 0; i < warm + probe_.samples; ++i) {
      look_for_stop();
      const double us = once();
      if (i >= warm) samples.push_back(us);
    }
    return samples;
  }

  // Launches a replay and returns when it has come to the gate's door.
  void arrive(Graph& graph) {
    if (!signal_->arm(++epoch_)) throw DeviceError(probe_.device + ": a gate was not closed again");
    arrived_->clear();
    passed_->clear();
    graph.launch(*main_);
    see(*arrived_);
  }

  void see(const Post& post) {
    const std::atomic<bool> never{false};
    if (!post.poll(patience, never))
      throw DeviceError(fmt::format("{}: a stream did not get on within {} s", probe_.device, patience / 1'000'000'000));
  }

  void spin(Nanos duration) const {
    const Nanos end = clock_.now() + duration;
    while (clock_.now() < end) {
    }
  }

  const GateProbe& probe_;
  const Clock& clock_ = monotonic_clock();
  std::unique_ptr<Device> device_;
  std::unique_ptr<Buffer> memory_;
  Signal* signal_;
  Post* arrived_;
  Post* passed_;
  std::int64_t* stamps_;
  std::unique_ptr<Stream> main_, other_;
  std::uint64_t epoch_ = 0;
};

// The gate that opens soonest, at p99, of those that let others launch meanwhile.
void choose(GateCosts& costs) {
  const GateCost* best = nullptr;
  for (const bool must_not_block : {true, false}) {
    for (const GateCost& gate : costs.gates) {
      if (!gate.supported || (must_not_block && percentile(gate.launch_blocked, 0.99) > 500)) continue;
      if (best == nullptr || percentile(gate.release, 0.99) < percentile(best->release, 0.99)) best = &gate;
    }
    if (best != nullptr) break;
  }
  costs.default_gate = best->gate;
  costs.why = fmt::format("opens within {:.1f} us of its release in 99 of 100 cases", percentile(best->release, 0.99));
}

}  // namespace

GateCosts measure_gates(const GateProbe& probe) {
  GateCosts costs;
  costs.idle_nodes = probe.idle_nodes;
  {
    Measure measure(probe, "auto");
    costs.device = measure.facts();
    costs.host_function = measure.host_function();
    costs.post = measure.post();
    costs.callbacks_serialised = measure.callbacks_serialised();
  }
  const bool gpu = costs.device.gate != "futex";
  for (const std::string& name :
       gpu ? std::vector<std::string>{"spin", "wait-value", "host-node"} : std::vector<std::string>{"futex"}) {
    GateCost cost;
    cost.gate = name;
    try {
      Measure measure(probe, gpu ? name : "auto");
      cost.supported = true;
      cost.release = measure.release();
      cost.launch_blocked = measure.launch_blocked();
      cost.idle_step = measure.idle_step();
      if (name == "host-node") cost.dispatch = costs.host_function;
    } catch (const EnvironmentError& error) {
      cost.reason = error.what();
    }
    costs.gates.push_back(std::move(cost));
  }
  choose(costs);
  return costs;
}

}  // namespace slacktier

// A small table served on this machine, and readers of it by one of the sources that read from other nodes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "tests/unit/tier/live_tier.hpp"
#include "tests/unit/tier/running_server.hpp"
#include "tests/unit/tier/source_driver.hpp"

namespace slacktier::testing {

struct RemoteBench {
  std::string source;  // tcp or rdma
  ScratchFolder folder;
  TableSpec spec = small_table(folder);
  std::string key = write_key(folder);
  ServedTable table = ServedTable::make(spec, {});
  std::unique_ptr<Device> device = open_device("cpu");
  std::unique_ptr<RunningServer> server;

  explicit RemoteBench(std::string name, ServerOptions options = {}) : source(std::move(name)) { start(std::move(options)); }
  // With options.listen set, a server that comes back to its address.
  void start(ServerOptions options = {}) { start(table, std::move(options)); }
  void start(const ServedTable& with, ServerOptions options = {}) {
    if (source == "rdma") options.rdma_device = "auto";
    const bool returning = !options.listen.empty();
    server = std::make_unique<RunningServer>(with, key, std::move(options), returning);
  }
  // Gone and back.
  void restart(const ServedTable& with) {
    ServerOptions same;
    same.listen = server->address;
    server->stop();
    start(with, same);
  }

  RemoteOptions options(Granularity granularity = Granularity::page) const {
    RemoteOptions remote;
    remote.connect = server->address;
    remote.key_file = key;
    remote.granularity = granularity;
    return remote;
  }
  LayerSetup layer(Granularity granularity, std::uint64_t cache_rows = 500, int threads = 2) const {
    LayerSetup setup = on(source, {}, cache_rows, threads);
    setup.remote = options(granularity);
    return setup;
  }

  // One batch of a source of its own, 200 pages: the errno of its first fault, and what the source says of it.
  std::pair<int, std::string> read(Granularity granularity = Granularity::page) {
    const PagePool pool(*device, 4096, 256);
    SourceOptions with;
    with.remote = options(granularity);
    with.verify_checksum = granularity == Granularity::page;
    const ImageHeader image = open_remote_image(with.remote);
    const auto reader = make_source(source, image, pool, with);
    Reading reading(*reader, image.segments[0], first_pages(200));
    reading.wait();
    for (std::size_t i = 0; i < 200; ++i)
      if (reading.faults[i] != PageFault::none) return {reading.errors[i], reader->failure()};
    return {0, ""};
  }

  // A step whose reads may fail.
  static const StepReport& try_step(LiveTier& live) {
    live.draw();
    live.launch();
    return live.tier->finish_step();
  }
  // Steps until one has all its rows, a minute at most, and compares those: back-off ends within two seconds, every step
  // until then reports.
  static bool steps_until_well(LiveTier& live) {
    const Nanos deadline = monotonic_clock().now() + 60'000'000'000;
    while (monotonic_clock().now() < deadline) {
      const StepReport& report = try_step(live);
      if (report.layers[0].status == StepStatus::ok && report.layers[1].status == StepStatus::ok) {
        live.tier->check(live.checks);
        return live.checks.mismatches == 0;
      }
      monotonic_clock().sleep_until(monotonic_clock().now() + 20'000'000);
    }
    return false;
  }
};

}  // namespace slacktier::testing

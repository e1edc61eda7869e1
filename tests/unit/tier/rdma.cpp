// Source rdma against a server of this machine, where there is an RDMA device (soft-RoCE will do): the same rows, and what
// the device refuses.
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "platforms/error.hpp"
#include "tests/catch.hpp"
#include "tests/unit/tier/remote_bench.hpp"

using namespace slacktier;
using namespace slacktier::testing;

namespace {

// Null, and the case skipped, where there is no RDMA device.
std::unique_ptr<RemoteBench> rdma_bench(ServerOptions options = {}) {
  try {
    return std::make_unique<RemoteBench>("rdma", std::move(options));
  } catch (const EnvironmentError& error) {
    const std::string why = error.what();
    if (why.find("no RDMA device") == std::string::npos) throw;
    skip_test(why);
    return nullptr;
  }
}

}  // namespace

TEST_CASE("rdma gives the rows of dram bit for bit, to two readers at once", "[rdma]") {
  const auto made = rdma_bench();
  if (!made) return;
  RemoteBench& bench = *made;
  const char* wanted = std::getenv("SLACKTIER_RDMA_LOOKUPS");
  const std::uint64_t lookups = wanted ? std::strtoull(wanted, nullptr, 10) : 20'000;
  for (const Granularity granularity : {Granularity::page, Granularity::record}) {
    INFO(to_string(granularity));
    const LayerSetup setup = bench.layer(granularity, 50);
    LiveTier dram(*bench.device, bench.spec, {on("dram", {}, 0), on("dram", {}, 0)});
    LiveTier first(*bench.device, bench.spec, {setup, setup}), second(*bench.device, bench.spec, {setup, setup});
    std::uint64_t done = 0, pages = 0;
    const Nanos begun = monotonic_clock().now();
    while (done < lookups) {
      for (LiveTier* live : {&dram, &first, &second}) live->draw(500);
      // Both read at the same time.
      first.launch();
      second.launch();
      for (LiveTier* live : {&first, &second}) {
        const StepReport& report = live->tier->finish_step();
        live->tier->check(live->checks);
        for (const LayerReport& layer : report.layers) {
          INFO(layer.fault);
          REQUIRE(layer.status == StepStatus::ok);
          done += layer.counts.lookups;
          pages += layer.counts.pages;
        }
        REQUIRE(live->checks.mismatches == 0);
      }
      dram.step();
    }
    REQUIRE(dram.checks.mismatches == 0);
    std::printf("%s granularity: %llu lookups of two readers bit-exact, %llu pages, %.1f s; %s\n", to_string(granularity),
                static_cast<unsigned long long>(done), static_cast<unsigned long long>(pages),
                static_cast<double>(monotonic_clock().now() - begun) / 1e9, first.tier->describe_source(0).c_str());
  }
}

TEST_CASE("a wrong key and reads out of bounds are refused by the device and reported", "[rdma]") {
  ServerOptions wrong_key;
  wrong_key.announce = [](protocol::Attached& told) {
    for (auto& chunk : told.memory) chunk.key ^= 0x5a00;
  };
  const auto made = rdma_bench(wrong_key);
  if (!made) return;
  RemoteBench& bench = *made;
  const auto [key_error, key_failure] = bench.read();
  CHECK(key_error == EACCES);
  CHECK_THAT(key_failure, contains_text("IBV_WC_REM_ACCESS_ERR") && contains_text(bench.server->address));
  bench.server->stop();
  ServerOptions shifted;
  shifted.announce = [](protocol::Attached& told) {
    for (auto& chunk : told.memory) chunk.address += chunk.bytes;
  };
  bench.start(shifted);
  const auto [bounds_error, bounds_failure] = bench.read(Granularity::record);
  CHECK(bounds_error == EACCES);
  CHECK_THAT(bounds_failure, contains_text("IBV_WC_REM_ACCESS_ERR"));
  bench.server->stop();
  bench.start();
  CHECK(bench.read().first == 0);
}

TEST_CASE("an rdma server that goes is noticed at once, and taken back when it returns", "[rdma]") {
  const auto made = rdma_bench();
  if (!made) return;
  RemoteBench& bench = *made;
  const LayerSetup setup = bench.layer(Granularity::page, 0);
  LiveTier live(*bench.device, bench.spec, {setup, setup});
  live.draw();
  REQUIRE(live.step().layers[0].status == StepStatus::ok);
  ServerOptions same;
  same.listen = bench.server->address;
  bench.server->stop();
  const StepReport& lost = bench.try_step(live);
  CHECK(lost.layers[0].status == StepStatus::read_error);
  CHECK_THAT(lost.layers[0].fault, contains_text(same.listen));
  bench.start(same);
  REQUIRE(bench.steps_until_well(live));
}

TEST_CASE("GIDs that cannot reach each other, and devices that are not there, are named", "[rdma]") {
  const auto made = rdma_bench();
  if (!made) return;
  RemoteBench& bench = *made;
  const PagePool pool(*bench.device, 4096, 16);
  SourceOptions with;
  with.remote = bench.options(Granularity::page);
  const ImageHeader image = open_remote_image(with.remote);
  const auto refusal = [&] {
    try {
      make_source("rdma", image, pool, with);
    } catch (const std::exception& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  with.remote.gid_index = 1000;
  CHECK_THAT(refusal(), contains_text("GID 1000"));
  with.remote.gid_index = 0;  // of soft-RoCE: the link-local one
  const std::string why = refusal();
  if (!why.empty()) CHECK_THAT(why, contains_text("link-local") && contains_text("--gid-index"));
  std::printf("GID 0: %s\n", why.empty() ? "reaches the server" : why.c_str());
  with.remote.gid_index = -1;
  with.remote.device = "nowhere0";
  CHECK_THAT(refusal(), contains_text("nowhere0"));
}

TEST_CASE("memory that may not be locked is said to be so, with the limit and the command", "[rdma]") {
  const auto made = rdma_bench();
  if (!made) return;
  RemoteBench& bench = *made;
  // Without the capability that lets root lock what it likes; both are of this thread and process alone, and given back.
  rlimit before = {};
  REQUIRE(::getrlimit(RLIMIT_MEMLOCK, &before) == 0);
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct had[2] = {}, without[2] = {};
  REQUIRE(::syscall(SYS_capget, &header, had) == 0);
  std::copy(std::begin(had), std::end(had), without);
  without[0].effective &= ~(1u << CAP_IPC_LOCK);
  const rlimit small = {65536, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_MEMLOCK, &small) == 0);
  REQUIRE(::syscall(SYS_capset, &header, without) == 0);
  std::string why;
  try {
    ServerOptions options;
    options.listen = "127.0.0.1:0";
    options.key = load_key(bench.key);
    options.rdma_device = "auto";
    const TableServer server(bench.table, options);
  } catch (const EnvironmentError& error) {
    why = error.what();
  }
  ::syscall(SYS_capset, &header, had);
  ::setrlimit(RLIMIT_MEMLOCK, &before);
  CHECK_THAT(why, contains_text("65536") && contains_text("ulimit -l"));
}

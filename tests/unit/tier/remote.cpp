// Source tcp against a server of this machine: the same rows, and what happens when the server does not play along.
#include <sys/socket.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>

#include "platforms/error.hpp"
#include "tests/catch.hpp"
#include "tests/unit/tier/remote_bench.hpp"

using namespace slacktier;
using namespace slacktier::testing;

namespace {

std::string refusal(const RemoteOptions& options, const protocol::Wanted& wanted = {}) {
  try {
    open_remote_image(options, wanted);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("tcp gives the rows of dram bit for bit, and the hits of a disk", "[remote]") {
  RemoteBench bench("tcp");
  const auto disks = stage_small(bench.folder, bench.spec, 1);
  for (const Granularity granularity : {Granularity::page, Granularity::record})
    for (const int threads : {1, 3}) {
      INFO(to_string(granularity) << " " << threads);
      const LayerSetup setup = bench.layer(granularity, 500, threads);
      LiveTier dram(*bench.device, bench.spec, {on("dram", {}, 0), on("dram", {}, 0)});
      LiveTier disk(*bench.device, bench.spec, {on("pread", disks, 500), on("pread", disks, 500)});
      LiveTier tcp(*bench.device, bench.spec, {setup, setup});
      CHECK_THAT(tcp.tier->describe_source(0), contains_text("no RDMA") && contains_text(to_string(granularity)));
      for (int i = 0; i < 25; ++i) {
        for (LiveTier* live : {&dram, &disk, &tcp}) live->draw();
        const StepReport& of_dram = dram.step();
        const StepReport& of_disk = disk.step();
        const StepReport& of_tcp = tcp.step();
        for (std::size_t l = 0; l < 2; ++l) {
          REQUIRE(of_tcp.layers[l].status == StepStatus::ok);
          REQUIRE(of_tcp.layers[l].counts == of_disk.layers[l].counts);
          REQUIRE(of_tcp.layers[l].counts.owned == of_dram.layers[l].counts.owned);
        }
      }
      // Every gathered row was compared with its origin, in all three.
      for (const LiveTier* live : {&dram, &disk, &tcp}) REQUIRE(live->checks.mismatches == 0);
      REQUIRE(tcp.checks.checked == dram.checks.checked);
      REQUIRE(tcp.checks.pages > 0);
    }
}

TEST_CASE("a staged image is served as it lies on its disks; shards come from several servers", "[remote]") {
  RemoteBench bench("tcp");
  const auto disks = stage_small(bench.folder, bench.spec, 2);
  const ServedTable one = ServedTable::load(disks, {.layers = {1}}), three = ServedTable::load(disks, {.layers = {3}});
  RunningServer first(one, bench.key), second(three, bench.key);
  RemoteOptions both = bench.options();
  both.connect = second.address + "," + first.address;
  const ImageHeader image = open_remote_image(both);
  CHECK(image.paths.size() == 2);
  CHECK(image.nonce == open_image(disks, bench.spec).nonce);
  const PagePool pool(*bench.device, 4096, 1024);
  SourceOptions options;
  options.remote = both;
  options.threads = 2;
  options.verify_checksum = true;
  const auto source = make_source("tcp", image, pool, options);
  for (const int layer : {1, 3}) {
    const ImageSegment& segment = image.segment(layer, 0);
    Reading reading(*source, segment, first_pages(500));
    reading.wait();
    for (const PageFault fault : reading.faults) REQUIRE(fault == PageFault::none);
  }
  both.connect = first.address + "," + first.address;
  CHECK_THAT(refusal(both), contains_text("another of the servers"));
  both.connect = first.address + "," + bench.server->address;
  CHECK_THAT(refusal(both), contains_text("staging"));
}

TEST_CASE("parts of a table, dealt to several servers, make up the whole", "[remote]") {
  RemoteBench bench("tcp");
  StageOptions options;
  options.ranks = 3;
  options.max_bytes = (1 << 20) + 300 * 4096;
  const ServedTable whole = ServedTable::make(bench.spec, options);
  const auto by_rank = deal_parts(whole.header().segments, 2);
  REQUIRE(by_rank.size() == 2);
  CHECK(by_rank[0].ranks == std::vector<std::uint32_t>{0, 2});
  CHECK(by_rank[1].ranks == std::vector<std::uint32_t>{1});
  CHECK(by_rank[0].layers.empty());
  const auto by_layer = deal_parts(bench.table.header().segments, 2);
  CHECK(by_layer[0].layers == std::vector<int>{1});
  CHECK(by_layer[1].layers == std::vector<int>{3});
  CHECK_THROWS_AS(deal_parts(whole.header().segments, 4), UsageError);
  CHECK(deal_parts(bench.table.header().segments, 1).size() == 1);

  // Scaled as the whole is, not each for itself.
  const ServedTable one = ServedTable::make(bench.spec, options, by_rank[0]),
                    other = ServedTable::make(bench.spec, options, by_rank[1]);
  RunningServer first(one, bench.key), second(other, bench.key);
  RemoteOptions both = bench.options();
  both.connect = first.address + "," + second.address;
  const ImageHeader joined = open_remote_image(both);
  CHECK(joined.nonce == whole.header().nonce);
  REQUIRE(joined.segments.size() == whole.header().segments.size());
  for (const ImageSegment& segment : joined.segments)
    CHECK(segment.stored_pages == whole.header().segment(segment.layer, segment.rank).stored_pages);

  ServedPart placed;
  placed.numa_node = 0;
  CHECK_THAT(ServedTable::make(bench.spec, options, placed).describe_place(), contains_text("NUMA node 0"));
  CHECK(whole.describe_place().empty());
}

TEST_CASE("a scaled table and other seeds are served as staged", "[remote]") {
  RemoteBench bench("tcp");
  StageOptions options;
  options.max_bytes = (1 << 20) + 100 * 4096;
  options.seed = 5;
  const ServedTable scaled = ServedTable::make(bench.spec, options);
  CHECK(scaled.header().scaled());
  CHECK(ServedTable::make(bench.spec, options).header().nonce == scaled.header().nonce);
  CHECK(bench.table.header().nonce != scaled.header().nonce);
  options.disks = {bench.folder.file("scaled.img")};
  stage_image(bench.spec, options);
  const ServedTable loaded = ServedTable::load(options.disks);
  REQUIRE(loaded.header().segments.size() == 2);
  for (std::size_t s = 0; s < 2; ++s)
    for (std::uint64_t page = 0; page < loaded.header().segments[s].stored_pages; ++page)
      REQUIRE(std::memcmp(loaded.page(s, page), scaled.page(s, page), 4096 - 32) == 0);
  bench.folder.damage("scaled.img", (1 << 20) + 4096 * 3 + 17);
  CHECK_THROWS_AS(ServedTable::load(options.disks), CheckFailed);
  CHECK_THROWS_AS(ServedTable::load(options.disks, {.layers = {7}}), UsageError);
}

TEST_CASE("a reader that does not fit the table is refused, and told why on both sides", "[remote]") {
  RemoteBench bench("tcp");
  std::mutex mutex;
  std::string log;
  ServerOptions logging;
  logging.log = [&](const std::string& line) {
    const std::lock_guard lock(mutex);
    log += line + "\n";
  };
  RunningServer server(bench.table, bench.key, logging);
  RemoteOptions options = bench.options();
  options.connect = server.address;
  const auto rows = generated_table(bench.spec, 1), other_rows = generated_table(bench.spec, 2);
  const protocol::Wanted good = wanted_table(bench.spec, ShardMap::contiguous, 1, *rows);
  CHECK(refusal(options, good).empty());

  protocol::Wanted wanted = wanted_table(bench.spec, ShardMap::contiguous, 1, *other_rows);
  CHECK_THAT(refusal(options, wanted), contains_text("seed=2") && contains_text(server.address));
  wanted = wanted_table(bench.spec, ShardMap::striped, 2, *rows);
  CHECK_THAT(refusal(options, wanted), contains_text("shard map"));
  wanted = good;
  wanted.ranks = 4;
  CHECK_THAT(refusal(options, wanted), contains_text("number of ranks"));
  wanted = good;
  wanted.fingerprint = "0000000000000000";
  CHECK_THAT(refusal(options, wanted), contains_text("table fingerprint"));
  wanted = good;
  wanted.nonce = 12;
  CHECK_THAT(refusal(options, wanted), contains_text("staging"));
  RemoteOptions other_key = options;
  other_key.key_file = write_key(bench.folder, "other", "another key of sixteen bytes");
  CHECK_THAT(refusal(other_key), contains_text("keys differ"));
  REQUIRE(server.await([](const ServerMetrics& m) { return m.refused == 6; }));
  server.stop();
  for (const char* why : {"seed=2", "shard map", "number of ranks", "table fingerprint", "staging", "keys differ"})
    CHECK_THAT(log, contains_text(why));
}

TEST_CASE("keys and addresses that are of no use are named", "[remote]") {
  RemoteBench bench("tcp");
  RemoteOptions options = bench.options();
  options.key_file = bench.folder.file("nowhere");
  CHECK_THAT(refusal(options), contains_text("nowhere") && contains_text("openssl"));
  options.key_file = write_key(bench.folder, "short", "short");
  CHECK_THAT(refusal(options), contains_text("16"));
  options.key_file = write_key(bench.folder, "open");
  REQUIRE(::chmod(options.key_file.c_str(), 0644) == 0);
  CHECK_THAT(refusal(options), contains_text("chmod 600"));
  options = bench.options();
  for (const char* address : {"localhost", "1.2.3.4:", "1.2.3.4:x", ":5", "::1:80", "a:1,,b:2", "127.0.0.1:0"}) {
    options.connect = address;
    INFO(address);
    CHECK_THAT(refusal(options), contains_text("'"));
  }
  const std::string address = bench.server->address;
  CHECK_THROWS_AS(RunningServer(bench.table, bench.key,
                                [&] {
                                  ServerOptions taken;
                                  taken.listen = address;
                                  return taken;
                                }()),
                  EnvironmentError);
  bench.server->stop();
  options = bench.options();
  CHECK_THROWS_AS(open_remote_image(options), std::system_error);
}

TEST_CASE("a server that goes costs steps their rows and says so; when it is back, rows are right again", "[remote]") {
  for (const Granularity granularity : {Granularity::page, Granularity::record}) {
    RemoteBench bench("tcp");
    const LayerSetup setup = bench.layer(granularity, 0);
    LiveTier live(*bench.device, bench.spec, {setup, setup});
    live.draw();
    REQUIRE(live.step().layers[0].status == StepStatus::ok);
    ServerOptions same;
    same.listen = bench.server->address;
    bench.server->stop();
    for (int i = 0; i < 3; ++i) {
      const StepReport& report = bench.try_step(live);
      REQUIRE(report.layers[0].status == StepStatus::read_error);
      CHECK_THAT(report.layers[0].fault, contains_text(same.listen));
    }
    bench.start(same);
    REQUIRE(bench.steps_until_well(live));
    // Gone and back between two steps is not even noticed.
    bench.restart(bench.table);
    live.draw();
    REQUIRE(live.step().layers[0].status == StepStatus::ok);
    CHECK(live.checks.mismatches == 0);
    // Another staging in its place is refused: a row of it would be wrong.
    StageOptions other;
    other.seed = 9;
    const ServedTable another = ServedTable::make(bench.spec, other);
    bench.restart(another);
    const StepReport& foreign = bench.try_step(live);
    CHECK(foreign.layers[0].status == StepStatus::read_error);
    CHECK_THAT(foreign.layers[0].fault, contains_text("refused"));
  }
}

TEST_CASE("wrappers pass on what a source says of its server, and charge records what they are", "[remote]") {
  RemoteBench bench("tcp");
  const PagePool pool(*bench.device, 4096, 64);
  SourceOptions options;
  options.remote = bench.options(Granularity::record);
  const ImageHeader image = open_remote_image(options.remote);
  const std::vector<std::string> wrappers{"delayed:gb_per_s=0.001", "shared:tenants=2", "faulty:class=eio,nth=1000000"};
  const auto source = make_source("tcp", image, pool, options, wrappers);
  // A record and its trailer take 0.3 ms on this link, a page would take 4 ms.
  std::vector<PageRead> reads;
  for (std::uint32_t i = 0; i < 50; ++i) reads.push_back({i, i, record_bit(i % 15)});
  Reading records(*source, image.segments[0], reads);
  CHECK(records.took() >= 50 * 296'000);
  for (const PageFault fault : records.faults) REQUIRE(fault == PageFault::none);
  bench.server->stop();
  Reading lost(*source, image.segments[0], first_pages(2));
  lost.wait();
  CHECK(lost.faults[0] == PageFault::io);
  CHECK_THAT(source->failure(), contains_text(options.remote.connect));
}

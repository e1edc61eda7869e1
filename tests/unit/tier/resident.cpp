// Tables that are read without pages, wherever they lie.
#include <cstdint>
#include <cstring>
#include <vector>

#include "platforms/error.hpp"
#include "tests/catch.hpp"
#include "tests/test_device.hpp"
#include "tests/unit/tier/live_tier.hpp"

using namespace slacktier;
using namespace slacktier::testing;

namespace {

template <class Call>
std::string refusal(const Call& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "(nothing was thrown)";
}

}  // namespace

TEST_CASE("a resident table holds its rows exactly, in each place", "[resident]") {
  const ScratchFolder folder;
  const TableSpec spec = small_table(folder);
  const auto device = open_test_device();
  const Shard shard = make_shard(spec, 1, ShardMap::contiguous, 1, 0);
  const auto origin = generated_rows(spec, 1, shard, 3);
  for (const std::string source : {"dram", "hbm"})
    for (const std::uint64_t rows : {std::uint64_t{1}, std::uint64_t{1001}, shard.rows}) {
      INFO(source << " " << rows);
      const ResidentTable table(*device, spec, *origin, rows, source);
      const std::uint64_t bytes = rows * spec.row_bytes;
      CHECK(table.bytes() == (bytes + 4095) / 4096 * 4096);
      const bool on_host = source == "dram" || device->facts().backend == "cpu";
      CHECK(table.host_bytes() == (on_host ? table.bytes() : 0));
      CHECK(table.describe().starts_with(source == "dram" ? "host table, " : "device memory, "));
      std::vector<std::byte> expected(bytes);
      origin->rows(0, rows, expected.data());
      const auto copy = device->allocate_host(bytes);
      const auto stream = device->create_stream("fetch");
      stream->copy(copy->host(), table.device_data(), bytes);
      stream->synchronize();
      CHECK(std::memcmp(copy->host(), expected.data(), bytes) == 0);
    }
}

TEST_CASE("a resident table that cannot be made is refused with what it needs", "[resident]") {
  const ScratchFolder folder;
  const TableSpec spec = small_table(folder);
  const auto device = open_test_device();
  const Shard shard = make_shard(spec, 0, ShardMap::contiguous, 1, 0);
  const auto origin = generated_rows(spec, 0, shard, 1);
  const auto make = [&](std::uint64_t rows, const std::string& source, const std::string& peer = "") {
    return [&device, &spec, &origin, rows, source, peer] { ResidentTable(*device, spec, *origin, rows, source, peer); };
  };
  CHECK_THROWS_AS(make(10, "tape")(), UsageError);
  CHECK_THROWS_AS(make(10, "dram", "cuda:1")(), UsageError);
  // More than any machine has, and an address space could not hold.
  const std::uint64_t rows = (std::uint64_t{1} << 60) / spec.row_bytes;
  for (const char* source : {"dram", "hbm"}) {
    CHECK_THROWS_AS(make(rows, source)(), EnvironmentError);
    const std::string message = refusal(make(rows, source));
    INFO(message);
    CHECK(message.find(std::to_string(rows) + " rows of table " + spec.name) != std::string::npos);
  }
  if (device->facts().backend == "cpu") {
    CHECK_THROWS_AS(make(10, "peer", "cuda:1")(), EnvironmentError);
    CHECK(refusal(make(10, "peer", "cuda:1")).find("a cpu device has no peers") != std::string::npos);
  } else {
    CHECK_THROWS_AS(make(10, "peer", "cpu")(), UsageError);
    const std::string backend = device->facts().backend;
    CHECK(refusal(make(10, "peer", backend + ":0")).find("is the device itself") != std::string::npos);
    CHECK_THROWS_AS(make(10, "peer", backend + ":99")(), EnvironmentError);
  }
  TierOptions options;
  options.max_tokens = 1;
  options.layers = {on("hbm", {}, 0), on("hbm", {}, 0)};
  options.folds = {{10}, {10}};
  options.geometry = make_page_geometry(4096, spec.row_bytes);
  CHECK(refusal([&] { Tier(*device, spec, options); }).find("layer 1 in hbm has no table") != std::string::npos);
}

TEST_CASE("layers in device memory need no host memory but their descriptors", "[resident]") {
  const ScratchFolder folder;
  const TableSpec spec = small_table(folder);
  const auto device = open_test_device();
  LiveTier in_dram(*device, spec, {on("dram", {}, 0), on("dram", {}, 0)});
  LiveTier in_hbm(*device, spec, {on("hbm", {}, 0), on("hbm", {}, 0)});
  for (int s = 0; s < 5; ++s) {
    in_dram.draw();
    in_hbm.context = in_dram.context;
    in_hbm.active = in_dram.active;
    in_dram.step();
    for (const auto& layer : in_hbm.step().layers) CHECK(layer.counts.pages == 0);
  }
  CHECK(in_dram.checks.mismatches == 0);
  CHECK(in_hbm.checks.mismatches == 0);
  CHECK(in_hbm.checks.checked == in_dram.checks.checked);
  CHECK(in_hbm.tier->describe_source(0).starts_with("device memory, "));
  if (device->facts().backend == "cpu") return;
  const std::uint64_t tables = in_dram.tables[0]->bytes() + in_dram.tables[1]->bytes();
  CHECK(in_dram.tier->host_memory().allocated == in_hbm.tier->host_memory().allocated + tables);
}

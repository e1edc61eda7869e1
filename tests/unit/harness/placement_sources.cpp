// What a placement says of a layer's source: read strictly, shown again as it was read.
#include <cstdint>

#include "harness/placement.hpp"
#include "platforms/error.hpp"
#include "reports/json.hpp"
#include "tests/catch.hpp"

using namespace slacktier;

namespace {

TableSpec table() {
  TableSpec spec;
  spec.name = "two";
  spec.layers.resize(2);
  spec.layers[0].layer = 1;
  spec.layers[1].layer = 14;
  return spec;
}

Placement placement(const std::string& layer1) {
  const std::string text = R"({"layers": {"1": )" + layer1 + R"(, "14": {"source": "dram"}}})";
  return placement_from_json(parse_json(text, "test"), table(), "p.json");
}

std::string refusal(const std::string& layer1) {
  try {
    placement(layer1);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("wrappers, read mode and page cache are read, and written as they were read", "[placement_sources]") {
  const Placement read =
      placement(R"({"source": "buffered", "wrappers": ["delayed:latency_us=15,gb_per_s=12.5", "shared:tenants=2"],
    "read": "on-demand", "page_cache": {"drop": true, "hints": false}, "disks": 4, "threads": 2, "cache_rows_per_rank": 10})");
  const LayerPlacement& layer = read.layers.at(1);
  CHECK(layer.source == "buffered");
  CHECK(layer.wrappers == std::vector<std::string>{"delayed:latency_us=15,gb_per_s=12.5", "shared:tenants=2"});
  CHECK(layer.on_demand);
  CHECK(layer.drop_cache);
  CHECK_FALSE(layer.hints);
  const Json written = to_json(read);
  const Placement again = placement_from_json(parse_json(written.dump(), "again"), table(), "again");
  CHECK(to_json(again) == written);
  CHECK(written["layers"]["1"]["wrappers"].size() == 2);
  CHECK(written["layers"]["1"]["read"] == "on-demand");
  CHECK(written["layers"]["1"]["page_cache"]["drop"] == true);

  const LayerPlacement plain = placement(R"({"source": "uring"})").layers.at(1);
  CHECK(plain.wrappers.empty());
  CHECK_FALSE(plain.on_demand);
  CHECK_FALSE(plain.drop_cache);
  CHECK(plain.hints);
  CHECK_FALSE(placement(R"({"source": "mmap", "read": "prefetch"})").layers.at(1).on_demand);
  const Placement peer = placement(R"({"source": "peer", "peer": "cuda:1"})");
  CHECK(peer.layers.at(1).peer == "cuda:1");
  CHECK(to_json(peer)["layers"]["1"] == Json({{"source", "peer"}, {"peer", "cuda:1"}}));
}

TEST_CASE("what is wrong about a source is named with its field", "[placement_sources]") {
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases = {
      {R"({"source": "tape"})", {"p.json.layers.1.source", "'tape'", "uring, pread, buffered, mmap", "dram"}},
      {R"({"source": "uring", "wrappers": "shared:tenants=2"})", {"p.json.layers.1.wrappers: a list"}},
      {R"({"source": "uring", "wrappers": [2]})", {"p.json.layers.1.wrappers: texts"}},
      {R"({"source": "uring", "wrappers": ["shared:tenants=2", "shared:2"]})",
       {"p.json.layers.1.wrappers", "shared:2", "'2' is no setting"}},
      {R"({"source": "uring", "wrappers": ["slow"]})", {"p.json.layers.1.wrappers", "use one of delayed, shared, faulty"}},
      {R"({"source": "uring", "read": "later"})", {"p.json.layers.1.read", "prefetch, on-demand"}},
      {R"({"source": "uring", "read": true})", {"p.json.layers.1.read", "a string is needed"}},
      {R"({"source": "uring", "page_cache": {"drop": true}})",
       {"p.json.layers.1: page_cache", "uring does not read through the page cache"}},
      {R"({"source": "buffered", "page_cache": {"drop": 1}})", {"p.json.layers.1.page_cache.drop: true or false"}},
      {R"({"source": "buffered", "page_cache": {"hint": true}})", {"unknown field 'hint'; known are drop, hints"}},
      {R"({"source": "buffered", "page_cache": []})", {"p.json.layers.1.page_cache: an object"}},
      {R"({"source": "dram", "wrappers": ["shared:tenants=2"]})", {"p.json.layers.1", "dram reads no pages"}},
      {R"({"source": "dram", "read": "on-demand"})", {"dram reads no pages"}},
      {R"({"source": "hbm", "read": "on-demand"})", {"hbm reads no pages"}},
      {R"({"source": "peer"})", {"p.json.layers.1.peer", "is missing", "cuda:1"}},
      {R"({"source": "peer", "peer": 1})", {"p.json.layers.1.peer", "a string is needed"}},
      {R"({"source": "hbm", "peer": "cuda:1"})", {"p.json.layers.1.peer", "belongs to source"}},
      {R"({"source": "uring", "delayed": {"latency_us": 5}})", {"p.json.layers.1", "wrappers", "delayed:"}},
      {R"({"source": "uring", "tenants": 2})", {"unknown field 'tenants'"}},
  };
  for (const auto& [layer, parts] : cases) {
    INFO(layer);
    for (const auto& part : parts) CHECK_THAT(refusal(layer), contains_text(part));
  }
}

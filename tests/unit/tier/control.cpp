// Control files: what they may say, and how changes of the file are noticed.
#include "tier/control.hpp"

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <random>
#include <string>

#include "platforms/error.hpp"
#include "tests/catch.hpp"
#include "tests/unit/tier/scratch.hpp"

using namespace slacktier;
using namespace slacktier::test;

namespace {

const TableSpec& table() {
  static const TableSpec spec = load_table_spec("engram_v41");
  return spec;
}

std::string file(const std::string& results) { return R"({"schema": "slacktier/control/1.0", "results": )" + results + "}"; }

std::string refusal(const std::string& text) {
  try {
    parse_control(text, "control.json", table());
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

bool refused_naming(const std::string& text, const std::string& part) {
  const std::string message = refusal(text);
  UNSCOPED_INFO(message);
  return message.starts_with("control.json") && message.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a control file with every field", "[control]") {
  const Control control = parse_control(file(R"({
    "layers": {"1": {"source": "uring", "disks": 2, "threads": 3, "cache_rows_per_rank": [1, 2, 3, 4],
                     "cache_rows_reserved_per_rank": 9},
               "14": {"cache_rows_per_rank": 7}},
    "cache": {"policy": "lru"}, "order": "interleaved", "dedup": {"rows": false, "pages": true}, "watchdog_ms": 2.5})"),
                                        "control.json", table());
  REQUIRE(control.layers.size() == 2);
  const LayerControl& first = control.layers.at(1);
  REQUIRE(first.source == "uring");
  REQUIRE(first.disks == 2u);
  REQUIRE(first.threads == 3);
  REQUIRE(first.cache_rows == std::vector<std::uint64_t>{1, 2, 3, 4});
  REQUIRE(first.cache_rows_reserved == 9u);
  REQUIRE(control.layers.at(14).cache_rows == std::vector<std::uint64_t>{7});
  REQUIRE_FALSE(control.layers.at(14).source);
  REQUIRE(control.policy == "lru");
  REQUIRE(control.first_layer_first == false);
  REQUIRE(control.row_dedup == false);
  REQUIRE(control.page_dedup == true);
  REQUIRE(control.watchdog == 2'500'000);

  const Control nothing = parse_control(file("{}"), "control.json", table());
  REQUIRE(nothing.layers.empty());
  REQUIRE_FALSE(nothing.first_layer_first);
  REQUIRE_FALSE(nothing.row_dedup);
  REQUIRE_FALSE(nothing.watchdog);
}

TEST_CASE("a placement is a control file", "[control]") {
  const Control control = parse_control(R"({"schema": "slacktier/placement/1.0", "settings": {"table": "engram_v41"},
    "provenance": {}, "warnings": [], "results": {"name": "mine", "layers": {"14": {"source": "dram"}}, "order": "layer-first",
    "predicted": {"mean_ms": 1}, "decision": "MOVE", "host_bytes": 5, "gate": "spin"}})",
                                        "control.json", table());
  REQUIRE(control.layers.at(14).source == "dram");
  REQUIRE(control.first_layer_first == true);
}

TEST_CASE("what cannot be used is refused with its place", "[control]") {
  REQUIRE(refused_naming("", "not JSON"));
  REQUIRE(refused_naming("{\n\"schema\": ", ":2"));
  REQUIRE(refused_naming("[]", "object"));
  REQUIRE(refused_naming("{}", "schema"));
  REQUIRE(refused_naming(R"({"schema": "slacktier/control/2.0", "results": {}})", "schema"));
  REQUIRE(refused_naming(R"({"schema": "slacktier/control/1.0"})", "results: is missing"));
  REQUIRE(refused_naming(R"({"schema": "slacktier/control/1.0", "results": {}, "result": {}})", "unknown field 'result'"));
  REQUIRE(refused_naming(R"({"schema": "slacktier/control/1.0", "settings": {"table": "qwen38_ple"}, "results": {}})",
                         "settings.table"));
  REQUIRE(refused_naming(file(R"({"dedup": {"rows": true}, "dedup": {"rows": false}})"), "twice"));
  REQUIRE(refused_naming(file(R"({"ordre": "interleaved"})"), "unknown field 'ordre'"));
  REQUIRE(refused_naming(file(R"({"order": "backwards"})"), "results.order"));
  REQUIRE(refused_naming(file(R"({"order": 3})"), "results.order: a string"));
  REQUIRE(refused_naming(file(R"({"dedup": {"rows": 1}})"), "results.dedup.rows: true or false"));
  REQUIRE(refused_naming(file(R"({"dedup": {"columns": true}})"), "columns"));
  REQUIRE(refused_naming(file(R"({"watchdog_ms": 0})"), "watchdog_ms"));
  REQUIRE(refused_naming(file(R"({"layers": {"2": {}}})"), "its layers are 1, 14"));
  REQUIRE(refused_naming(file(R"({"layers": {"1": {"source": "floppy"}}})"), "results.layers.1.source"));
  REQUIRE(refused_naming(file(R"({"layers": {"1": {"threads": 0}}})"), "from 1 to 64"));
  REQUIRE(refused_naming(file(R"({"layers": {"1": {"threads": -2}}})"), "from 1 to 64"));
  REQUIRE(refused_naming(file(R"({"layers": {"1": {"disks": 65}}})"), "results.layers.1.disks"));
  REQUIRE(refused_naming(file(R"({"layers": {"1": {"cache_rows_per_rank": 1.5}}})"), "cache_rows_per_rank"));
  REQUIRE(refused_naming(file(R"({"layers": {"1": {"cache_rows_per_rank": []}}})"), "cache_rows_per_rank"));
  REQUIRE(refused_naming(file(R"({"layers": {"1": {"cache_rows_per_rank": [1, "2"]}}})"), "cache_rows_per_rank"));
  REQUIRE(refused_naming(file(R"({"layers": {"1": {"cache_rows": 5}}})"), "unknown field 'cache_rows'"));
  REQUIRE(refused_naming(file(R"({"cache": {"policy": "psychic"}})"), "results.cache.policy"));
  REQUIRE(refused_naming(file(R"({"cache": {"policy": "lru", "hot_rows": "f"}})"), "hot_rows"));
  REQUIRE(refused_naming(std::string(2000, '['), "deep"));
  REQUIRE(refused_naming(file("{}") + std::string(1, '\0') + "more", "NUL"));
}

TEST_CASE("a damaged control file is read or refused, whatever the damage", "[control]") {
  const std::string whole =
      file(R"({"layers": {"1": {"source": "uring", "cache_rows_per_rank": [1, 2]}}, "order": "interleaved"})");
  std::mt19937_64 random(5);
  std::size_t refused = 0;
  for (std::size_t length = 0; length < whole.size(); ++length) REQUIRE_FALSE(refusal(whole.substr(0, length)).empty());
  for (int trial = 0; trial < 3000; ++trial) {
    std::string text = whole;
    for (std::uint64_t changes = 1 + random() % 3; changes > 0; --changes)
      text[random() % text.size()] = static_cast<char>(random() % 256);
    refused += !refusal(text).empty();
  }
  REQUIRE(refused > 2000);
}

TEST_CASE("changes of a file are noticed once, by whatever way it changed", "[control]") {
  using News = ControlFile::News;
  const Scratch scratch;
  ControlFile control(scratch.file("control.json"));
  REQUIRE(control.look() == News::none);
  scratch.write("control.json", "one");
  REQUIRE(control.look() == News::changed);
  REQUIRE(control.text() == "one");
  REQUIRE(control.look() == News::none);
  // Replaced by another file of the same length and, as may happen, the same time.
  const auto time = std::filesystem::last_write_time(scratch.file("control.json"));
  scratch.write("new.json", "two");
  std::filesystem::last_write_time(scratch.file("new.json"), time);
  std::filesystem::rename(scratch.file("new.json"), scratch.file("control.json"));
  REQUIRE(control.look() == News::changed);
  REQUIRE(control.text() == "two");
  // Written half, then whole, in place.
  scratch.write("control.json", "thr");
  REQUIRE(control.look() != News::gone);
  scratch.write("control.json", "three");
  REQUIRE(control.look() == News::changed);
  REQUIRE(control.text() == "three");
  std::filesystem::remove(scratch.file("control.json"));
  REQUIRE(control.look() == News::gone);
  REQUIRE(control.look() == News::none);
  scratch.write("control.json", "four");
  REQUIRE(control.look() == News::changed);
  REQUIRE(control.text() == "four");
  scratch.write("control.json", std::string((1 << 20) + 1, ' '));
  REQUIRE(control.look() == News::unreadable);
  REQUIRE(control.look() == News::none);
}

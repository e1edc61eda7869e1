#include "reports/results_table.hpp"

#include <algorithm>
#include <sstream>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "reports/results_file.hpp"
#include "tests/catch.hpp"
#include "tests/unit/reports/examples.hpp"

using namespace slacktier;

namespace {

std::size_t widest_line(const std::string& text) {
  std::istringstream lines(text);
  std::size_t widest = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto characters = std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xc0) != 0x80; });
    widest = std::max(widest, static_cast<std::size_t>(characters));
  }
  return widest;
}

// A table's expected text: its title, the head that all share, and the rest.
std::string headed(std::string_view title, std::string_view rest) {
  constexpr std::string_view head =
      "model DeepSeek-V4.1-Flash · table engram_v41 · R 4 · measured ranks 3 · shards contiguous · device cpu · B 128 · q 1 "
      "· "
      "blocks 2\n"
      "4 KiB pages, 15 rows each\n"
      "warning: windows: the paper's 4xH200, not this machine\n"
      "\n";
  return fmt::format("{}\n{}{}", title, head, rest);
}

}  // namespace

TEST_CASE("the overhead table as text", "[results_table]") {
  const std::string text = render(overhead_table(read_envelope(example_path("results"))), TableFormat::text);
  const std::string expected = headed(
      "Decode step by placement",
      "configuration          load    mean    p50    p99  slowdown  95% interval       p  host  meas.  wrong  paper\n"
      "                                 ms     ms     ms         %             %           GiB    GiB   rows      %\n"
      "---------------------  -----  -----  -----  -----  --------  ------------  ------  ----  -----  -----  -----\n"
      "DRAM baseline          agent  29.41  29.40  31.10  baseline             –       –   223   2.15      0      –\n"
      "both on 1 disk, cache  agent  29.77  29.75      –      +1.2  [+1.0, +1.5]  <0.001    34      –      0   +1.2\n"
      "  split evenly\n"
      "\n"
      "slowdown: mean step against the baseline's, 95% interval by hierarchical bootstrap over blocks; p: Mann-Whitney of "
      "block means\n"
      "A/A check (agent): the baseline against itself -0.04% [-0.2, +0.2], covers 0\n"
      "–: p99 needs 662 samples\n"
      "paper: the published slowdown of the same configuration, on its own machine\n"
      "host: what the placement needs per node at the table's full size; meas.: what this process holds (resident, "
      "registered)\n");
  CHECK(text == expected);
}

TEST_CASE("the layer table as text", "[results_table]") {
  const std::string text = render(layer_table(read_envelope(example_path("results"))), TableFormat::text);
  const std::string expected = headed(
      "Lookups and reads by layer and rank",
      "configuration          load    k  rank   hit  reuse  pages  p99   miss  resolve  submit   T_k   p99   W_k  stall   "
      "p99\n"
      "                                           %      %   step           %       µs      ms    ms    ms    ms     ms    "
      "ms\n"
      "---------------------  -----  --  ----  ----  -----  -----  ---  -----  -------  ------  ----  ----  ----  -----  "
      "----\n"
      "both on 1 disk, cache  agent   1    3!  85.0    3.1    120  180  100.0       48    0.11  0.69  0.89  0.27   0.51  "
      "0.70\n"
      "  split evenly\n"
      "                              14    3!     –      –    118  178      –       48    0.11     –     –     –   0.51  "
      "0.70\n"
      "\n"
      "! both on 1 disk, cache split evenly (agent), layer 1, rank 3: steps not ok: 1 late\n"
      "! both on 1 disk, cache split evenly (agent), layer 14, rank 3: steps not ok: 1 late\n"
      "~ both on 1 disk, cache split evenly (agent), layer 14, rank 3: 0.020% of the lookups delivered as zeros: rows never "
      "seen\n"
      "hit, reuse: share of the rank's lookups found in the cache, or requested already in this step; miss: steps that read "
      "a page\n"
      "submit: from t = 0, of the first layer it is s; T_k: last page's arrival - s; stall: the stream's measured wait at "
      "the "
      "gate\n");
  CHECK(text == expected);
}

TEST_CASE("tables stay within 120 columns with large values", "[results_table]") {
  Envelope envelope = read_envelope(example_path("results"));
  auto all = configurations(envelope);
  all[1].name = "both tables on four disks, 4 I/O threads, cache of a million rows split evenly";
  all[1].step_ms.mean = all[1].step_ms.p50 = all[1].step_ms.p99 = 1234.56;
  all[1].slowdown->mean_pct = {-10.04, -12.51, -9.99};
  all[1].slowdown->mann_whitney_p = 0.5;
  all[1].layers[0].ranks[0].miss_pages_per_step.mean = 3072;
  envelope.settings["labels"] = Json::array();
  set_configurations(envelope, all);
  Table overhead = overhead_table(envelope), layers = layer_table(envelope);
  overhead.head.clear(), overhead.footnotes.clear();
  layers.head.clear(), layers.footnotes.clear();
  CHECK(widest_line(render(overhead, TableFormat::text)) <= 120);
  CHECK(widest_line(render(layers, TableFormat::text)) <= 120);
}

TEST_CASE("the full table keeps every value in CSV and JSON", "[results_table]") {
  const Table table = full_table(read_envelope(example_path("results")));
  const std::string csv = render(table, TableFormat::csv);
  CHECK(
      csv.substr(csv.find('\n') + 1) ==
      "DRAM baseline,agent,1000,29.41,29.4,31.1,28.9,32.5,29.4,29.42,,,,,,,,,,,0.001,223,2,2.1484375,2.0489096641540527,1,0,"
      "6144000,,29.41,31.1,223\r\n"
      "\"both on 1 disk, cache split evenly\",agent,600,29.77,29.75,,29.1,33.5,29.7,29.84,1.22,0.98,1.49,0.36,0.29,0.44,,,,"
      "0.0002,,34,0.5,,,,0,3686400,1.2,,31.8,34\r\n");
  const Json row = parse_json(render(table, TableFormat::json), "table")["rows"][1];
  CHECK(row["slowdown_hi_pct"] == 1.49);
  CHECK(row["p99_ms"].is_null());
  CHECK(render(table, TableFormat::markdown).find("| both on 1 disk, cache split evenly | agent | 600 | 29.770 |") !=
        std::string::npos);
}

TEST_CASE("what spoils the numbers is said below the table", "[results_table]") {
  Envelope envelope = read_envelope(example_path("results"));
  auto all = configurations(envelope);
  all[0].aa_check = AaCheck{{0.9, 0.4, 1.3}, false};
  all[0].run_order_slope_ms_per_block = Interval{0.02, 0.01, 0.03};
  set_configurations(envelope, all);
  const std::string text = render(overhead_table(envelope), TableFormat::text);
  CHECK_THAT(text, contains_text("+0.90% [+0.4, +1.3], DOES NOT COVER 0"));
  CHECK_THAT(text, contains_text("run order: steps drift: DRAM baseline (agent) +0.020 ms a block"));
}

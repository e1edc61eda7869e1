#include "reports/paper.hpp"

#include <numeric>

#include "tests/catch.hpp"

using namespace slacktier;

TEST_CASE("the paper's rows by configuration", "[paper]") {
  CHECK(paper_source().rfind("arXiv ", 0) == 0);
  CHECK(paper_table2_baseline().mean_ms.at("agent") == 29.41);
  CHECK(paper_table2_baseline().p99_ms.at("chat") == 35.1);
  CHECK(paper_table2_baseline().host_gib == 223);
  REQUIRE(paper_rows().size() == 6 + 5 + 2);
  const auto row = paper_row("both on 1 disk, cache on layer 14 only");
  REQUIRE(row);
  CHECK(row->host_gib == 34);
  CHECK(row->cache_rows_per_rank == 500000);
  CHECK(row->slowdown_pct.at("agent") == 5.6);
  CHECK(row->p99_ms.at("chat") == 37.7);
  CHECK_FALSE(paper_row("both on 1 disk")->cache_rows_per_rank);
  CHECK_FALSE(paper_row("both on tape"));
  CHECK(row->table == "Table 2");
  const auto ablation = paper_row("no in-step dedup");
  REQUIRE(ablation);
  CHECK(ablation->table == "Table 4");
  CHECK(ablation->mean_ms.at("agent") == 29.86);
  CHECK(ablation->slowdown_pct.at("agent") == Approx(1.53).margin(0.01));
  CHECK_FALSE(ablation->host_gib);
  CHECK(paper_row("page cache, 8 GiB")->slowdown_pct.at("chat") == 10.8);
}

TEST_CASE("layer times give the paper's windows and step", "[paper]") {
  const std::vector<double> layers = paper_v41_layer_ms();
  REQUIRE(layers.size() == 40);
  for (const auto& [layer, window] : paper_windows().window_ms) {
    CAPTURE(layer);
    CHECK(std::accumulate(layers.begin(), layers.begin() + layer, 0.0) == Approx(window).margin(0.01));
  }
  CHECK(std::accumulate(layers.begin(), layers.end(), 0.0) == Approx(29.4).margin(0.05));
  CHECK(paper_windows().step_ms == 29.7);
}

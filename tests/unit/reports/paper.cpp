#include "reports/paper.hpp"

#include <numeric>

#include "tests/catch.hpp"

using namespace slacktier;

TEST_CASE("the paper's Table 2 by configuration", "[paper]") {
  CHECK(paper_source().rfind("arXiv ", 0) == 0);
  CHECK(paper_table2_baseline().mean_ms.at("agent") == 29.41);
  CHECK(paper_table2_baseline().p99_ms.at("chat") == 35.1);
  CHECK(paper_table2_baseline().host_gib == 223);
  REQUIRE(paper_table2().size() == 6);
  const auto row = paper_table2_row("both on 1 disk, cache on layer 14 only");
  REQUIRE(row);
  CHECK(row->host_gib == 34);
  CHECK(row->cache_rows_per_rank == 500000);
  CHECK(row->slowdown_pct.at("agent") == 5.6);
  CHECK(row->p99_ms.at("chat") == 37.7);
  CHECK_FALSE(paper_table2_row("both on 1 disk")->cache_rows_per_rank);
  CHECK_FALSE(paper_table2_row("both on tape"));
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

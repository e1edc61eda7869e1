// The paper's traffic, as made here, hits as the paper says its own did.
#include <cstdint>

#include "harness/directory_pass.hpp"
#include "harness/sim.hpp"
#include "reports/paper.hpp"
#include "tests/catch.hpp"

using namespace slacktier;

TEST_CASE("generated paper sessions hit as the paper's", "[paper_traffic_sessions]") {
#if defined(__SANITIZE_THREAD__)
  return skip_test("one thread only, and the thread sanitizer's shadow of a full-size directory needs 2 GiB");
#endif
  const TableSpec spec = load_table_spec("engram_v41");
  for (const auto& [kind, sessions, field] :
       {std::tuple{"paper-agent", 102u, "agent_l1_hit"}, {"paper-chat", 128u, "chat_l1_hit"}}) {
    Campaign campaign;
    campaign.sessions = sessions;
    campaign.warm_steps = 1200;
    campaign.seed = 3;
    const StepTrace trace = record_steps(campaign, {kind, {}}, spec, TokenMap(), campaign.warm_steps + 200);
    DirectoryPasses passes(trace, spec, campaign, {});
    for (const Json& row : paper_values().at("table9_allocation_sweep")) {
      if (row.at("config") != "1 disk, f=0.5" && row.at("config") != "1 disk, f=1") continue;
      PassKey key;
      key.cache_rows = row.at("config") == "1 disk, f=1" ? 1'000'000 : 500'000;
      key.warm_steps = campaign.warm_steps;
      double hits = 0, owned = 0;
      for (key.rank = 0; key.rank < campaign.ranks; ++key.rank)
        for (const StepOutcome& step : passes.at(key).steps) {
          hits += step.hits;
          owned += step.owned;
        }
      INFO(kind << ", " << key.cache_rows << " rows: " << hits / owned);
      CHECK(hits / owned == Approx(row.at(field).get<double>()).margin(0.04));
    }
  }
}

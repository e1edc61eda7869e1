// The paper's values beside ours: only where its configuration is the one that runs.
#include "harness/campaign.hpp"
#include "tests/catch.hpp"

using namespace slacktier;

TEST_CASE("remote tables have the paper's slowdowns at B = 8, and no others", "[paper_value]") {
  Campaign campaign = load_campaign("remote");
  const auto value = [&](const char* placement, const char* load) { return paper_value(campaign, placement, load); };
  CHECK_FALSE(value("both remote", "agent"));
  campaign.sessions = 8;
  REQUIRE(value("both remote", "agent"));
  CHECK(value("both remote", "agent")->mean_pct == 1.8);
  CHECK(value("both remote", "chat")->mean_pct == 1.7);
  CHECK(value("both remote, cache split evenly", "agent")->mean_pct == 1.4);
  CHECK(value("both remote, cache split evenly", "chat")->mean_pct == 1.6);
  CHECK_FALSE(value("both remote", "mine"));
  CHECK_FALSE(value("both remote, two instances", "agent"));
  CHECK_FALSE(value("DRAM baseline", "agent"));
  campaign.tokens_per_session = 4;
  CHECK_FALSE(value("both remote", "agent"));
}

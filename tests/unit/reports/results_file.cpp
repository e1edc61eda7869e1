#include "reports/results_file.hpp"

#include "reports/error.hpp"
#include "reports/schema.hpp"
#include "tests/catch.hpp"
#include "tests/unit/reports/examples.hpp"

using namespace slacktier;

TEST_CASE("configurations survive being structures", "[results_file]") {
  const Envelope envelope = read_envelope(example_path("results"));
  const auto all = configurations(envelope);
  REQUIRE(all.size() == 2);
  CHECK_FALSE(all[0].baseline);
  CHECK(all[0].aa_check->covers_zero);
  CHECK(all[0].samples->file == "agent-0.npy");
  CHECK(all[1].slowdown->mean_pct.lo == 0.98);
  CHECK_FALSE(all[1].slowdown->p99_pct);
  CHECK(all[1].layers[0].ranks[0].status.at("late") == 1);
  CHECK(all[1].paper->host_gib == 34.0);
  Envelope again = envelope;
  set_configurations(again, all);
  CHECK(validate(schema_for("results"), parse_json(to_text(again), "again")).empty());
  // All but reasons that the structures say in their own words survives.
  for (std::size_t i = 0; i < all.size(); ++i)
    for (const auto& [key, field] : again.results[i].items()) {
      CAPTURE(i, key);
      if (key == "layers" || key == "host_memory") continue;
      CHECK(field == envelope.results[i][key]);
    }
  CHECK(again.results[1]["layers"][0] == envelope.results[1]["layers"][0]);
}

TEST_CASE("a configuration that is only begun can be written", "[results_file]") {
  Envelope envelope = read_envelope(example_path("results"));
  ConfigurationResult begun;
  begun.name = "begun";
  begun.placement = {{"layers", Json::object()}};
  begun.step_ms = distribution(std::vector<double>{});
  begun.layers = {{1, {}, {RankResult{}}}};
  set_configurations(envelope, {begun});
  const Json document = parse_json(to_text(envelope), "begun");
  CHECK(document["results"][0]["step_ms"]["reason"] == "no samples");
  CHECK(document["results"][0]["slowdown"].is_null());
}

TEST_CASE("a distribution says why it has no p99", "[results_file]") {
  const Distribution d = distribution(std::vector<double>{1, 2, 3});
  CHECK(d.mean == 2.0);
  CHECK_FALSE(d.p99);
  CHECK(d.reason == "p99 needs 662 samples");
}

TEST_CASE("a configuration with a wrong field is refused by name", "[results_file]") {
  Json json = example("results")["results"][0];
  json.erase("workload");
  CHECK_THROWS_WITH(configuration_from_json(json, "f.json: /results/0"),
                    contains_text("f.json: /results/0/workload: is missing"));
  json = example("results")["results"][0];
  json["host_memory"]["rss_bytes"] = "much";
  CHECK_THROWS_WITH(configuration_from_json(json, "f"),
                    contains_text("f/host_memory/rss_bytes: has the wrong type (string)"));
  CHECK_THROWS_WITH(configurations(read_envelope(example_path("reads"))), contains_text("is of kind 'reads'"));
}

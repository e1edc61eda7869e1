#include "probe/gates_table.hpp"

#include <cstdint>

#include <fmt/format.h>

namespace slacktier {
namespace {

Cell number(const Json& distribution, const char* field) {
  const Json& value = distribution.at(field);
  return value.is_null() ? Cell() : Cell::number(value.get<double>(), 1);
}

}  // namespace

Table gates_table(const Envelope& envelope) {
  const Json& results = envelope.results;
  Table table;
  table.title = "Gates: what it costs to make a stream wait for the host";
  const Json& provenance = envelope.provenance;
  if (provenance.contains("device"))
    table.head.push_back(
        fmt::format("{}: {}", provenance["device"].value("name", ""), provenance["device"].value("detail", "")));
  for (const Warning& warning : envelope.warnings) table.head.push_back("warning: " + warning.message);
  const std::string idle = fmt::format("{} idle", results.value("idle_nodes", 0));
  table.columns = {{"gate", "", Align::left, "gate"},
                   {"release p50", "us", Align::right, "release_p50_us"},
                   {"p99", "us", Align::right, "release_p99_us"},
                   {"max", "us", Align::right, "release_max_us"},
                   {"launch beside p50", "us", Align::right, "launch_p50_us"},
                   {"p99", "us", Align::right, "launch_p99_us"},
                   {"max", "us", Align::right, "launch_max_us"},
                   {idle, "us", Align::right, "idle_nodes_step_us"}};
  for (const Json& gate : results.at("gates")) {
    const std::string name = gate.at("gate").get<std::string>();
    if (!gate.at("supported").get<bool>()) {
      table.rows.push_back({name, {}, {}, {}, {}, {}, {}, {}});
      table.footnotes.push_back(fmt::format("{}: {}", name, gate.value("reason", "not supported")));
      continue;
    }
    const Json &release = gate.at("release_us"), &blocked = gate.at("launch_blocked_us");
    const Json& added = gate.at("idle_nodes_step_us");
    table.rows.push_back({name, number(release, "p50"), number(release, "p99"), number(release, "max"),
                          number(blocked, "p50"), number(blocked, "p99"), number(blocked, "max"),
                          added.is_null() ? Cell() : Cell::number(added.get<double>(), 1, true)});
  }
  const auto text = [&](const char* what, const Json& d) {
    const auto one = [&](const char* field) {
      return d.at(field).is_null() ? std::string("-") : fmt::format("{:.1f}", d.at(field).get<double>());
    };
    return fmt::format("{}: p50 {}, p99 {}, max {} us", what, one("p50"), one("p99"), one("max"));
  };
  table.footnotes.push_back(text("a stream reaches a host function until it runs", results.at("host_function_us")));
  table.footnotes.push_back(text("a stream reaches a post until a host that looks sees it", results.at("post_us")));
  table.footnotes.push_back(results.at("callbacks_serialised").get<bool>()
                                ? "host functions are serialised: while one runs, no other does"
                                : "host functions of different streams run beside each other");
  table.footnotes.push_back(
      "release: publish until the host sees what the stream writes next; launch beside: launch and "
      "completion on another stream while the gate is closed; idle: what open gates add to a step");
  table.footnotes.push_back(results.value("reason", ""));
  return table;
}

}  // namespace slacktier

#include "harness/plan_tables.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>

#include "harness/placement.hpp"
#include "reports/error.hpp"
#include "tier/directory.hpp"

namespace slacktier {
namespace {

double pct(const PlanProblem& problem, double ms) { return 100 * ms / problem.step_ms; }
double p99_pct(const PlanProblem& problem, double ms) { return 100 * ms / baseline_p99_ms(problem); }

std::vector<std::string> head_of(const PlanInput& input) {
  std::vector<std::string> head = input.labels;
  for (const Warning& warning : input.warnings)
    if (std::find(head.begin(), head.end(), warning.message) == head.end()) head.push_back(warning.message);
  return head;
}

std::string slowdown_text(const PlanProblem& problem, const Prediction& p) {
  std::string text = fmt::format("mean {:+.2f}% [{:+.2f}, {:+.2f}] of at most {}%", pct(problem, p.mean_ms),
                                 pct(problem, p.lo_ms), pct(problem, p.hi_ms), problem.mean_bound_pct);
  if (p.p99_known)
    text += fmt::format(", p99 {:+.2f}% of at most {}%", p99_pct(problem, p.p99_ms), problem.p99_bound_pct);
  else
    text += ", p99 unknown";
  return text;
}

}  // namespace

std::string decision_line(const PlanInput& input, const PlanOutcome& outcome) {
  const PlanProblem& problem = input.problem;
  const Plan& chosen = outcome.chosen;
  const std::string what = describe(problem, chosen.candidate);
  const double host = (outcome.baseline.host_bytes - chosen.host_bytes) / bytes_per_gib;
  const double device = (outcome.baseline.device_bytes - chosen.device_bytes) / bytes_per_gib;
  std::string frees = fmt::format("{} {:.1f} GiB of host memory", host >= 0 ? "frees" : "takes", std::abs(host));
  if (device != 0)
    frees += fmt::format(", {} {:.1f} GiB of device memory", device > 0 ? "frees" : "takes", std::abs(device));
  std::string line = fmt::format("{}: ", to_string(outcome.decision));
  if (outcome.decision == Decision::keep) {
    line += fmt::format("no plan that needs less stays within mean {}% and p99 {}%", problem.mean_bound_pct,
                        problem.p99_bound_pct);
    if (!chosen.predicted.any_read && chosen.candidate == outcome.baseline.candidate) return line;
    line += fmt::format("; nearest: {} ({}; {})", what, slowdown_text(problem, chosen.predicted), frees);
  } else {
    line += fmt::format("{}; {}; {}", what, slowdown_text(problem, chosen.predicted), frees);
  }
  if (chosen.predicted.any_read) {
    const double late = chosen.predicted.late_ms[chosen.predicted.binding];
    line += fmt::format("; layer {} binds ({} {:.2f} ms)", problem.layers[chosen.predicted.binding].k,
                        late > 0 ? "late by" : "headroom", std::abs(late));
    if (!outcome.unbind.empty()) line += fmt::format("; what would help: {}", fmt::join(outcome.unbind, ", "));
  }
  return line;
}

Table ranked_table(const PlanInput& input, const PlanOutcome& outcome, std::optional<double> prefill_compute_ms) {
  const PlanProblem& problem = input.problem;
  Table table;
  table.title = fmt::format("Plans for {} at B = {}, q = {}: {} considered", input.spec.name, input.sessions,
                            input.tokens_per_session, outcome.considered);
  table.head = head_of(input);
  table.columns = {{"plan", "", Align::left, "", 44},
                   {"within", "", Align::left, ""},
                   {"mean", "%", Align::right, ""},
                   {"95% interval", "%", Align::right, ""},
                   {"p99", "%", Align::right, ""},
                   {"host", "GiB", Align::right, ""},
                   {"disk", "GiB", Align::right, ""},
                   {"binds", "", Align::right, ""},
                   {"late", "ms", Align::right, ""},
                   {"prefill", "pages", Align::right, ""},
                   {"read", "ms", Align::right, "prefill_read_ms"},
                   {"exposed", "ms", Align::right, "prefill_exposed_ms"}};
  if (!problem.price_per_gib.empty()) table.columns.insert(table.columns.begin() + 7, {"cost", "", Align::right, ""});
  bool beyond = false;
  for (const Plan& plan : outcome.ranked) {
    const Prediction& p = plan.predicted;
    Cell mean = Cell::number(pct(problem, p.mean_ms), 2, true);
    if (p.extrapolates) mean.mark = "*", beyond = true;
    const bool inside = within(problem, plan);
    std::vector<Cell> row{describe(problem, plan.candidate),
                          inside ? certainly_within(problem, plan) ? "yes" : "unsure" : "no",
                          mean,
                          Cell(fmt::format("[{:+.2f}, {:+.2f}]", pct(problem, p.lo_ms), pct(problem, p.hi_ms))),
                          p.p99_known ? Cell::number(p99_pct(problem, p.p99_ms), 2, true) : Cell("unknown"),
                          Cell::number(plan.host_bytes / bytes_per_gib, 1),
                          Cell::number(plan.disk_bytes / bytes_per_gib, 1)};
    if (!problem.price_per_gib.empty()) row.push_back(Cell::number(plan.cost, 2));
    row.push_back(p.any_read ? Cell(fmt::format("L{}", problem.layers[p.binding].k)) : Cell());
    row.push_back(p.any_read ? Cell::number(p.late_ms[p.binding], 2, true) : Cell());
    const auto prefill = input.prefill_cost(plan.candidate);
    if (!p.any_read) {
      row.insert(row.end(), {Cell::count(0), Cell::number(0.0, 1), Cell::number(0.0, 1)});
    } else if (!prefill) {
      row.insert(row.end(), {Cell("unknown"), Cell("unknown"), Cell("unknown")});
    } else {
      Cell read = Cell::number(prefill->read_ms, 1);
      if (prefill->extrapolates) read.mark = "*", beyond = true;
      row.push_back(Cell::count(std::llround(prefill->pages)));
      row.push_back(read);
      row.push_back(prefill_compute_ms ? Cell::number(std::max(0.0, prefill->read_ms - *prefill_compute_ms), 1)
                                       : Cell("unknown"));
    }
    table.rows.push_back(std::move(row));
  }
  table.footnotes.push_back(
      fmt::format("mean, p99: slowdown of a {:.2f} ms step; late: s + T - W of the layer that binds, negative: headroom; "
                  "host: tables and "
                  "directories of all ranks",
                  problem.step_ms));
  if (input.prefill_tokens > 0)
    table.footnotes.push_back(fmt::format("prefill: one chunk of {} tokens, slowest rank", input.prefill_tokens));
  if (beyond) table.footnotes.push_back("*: beyond the pages that were measured");
  return table;
}

Table what_if_table(const PlanSources& sources, const PlanSettings& settings) {
  struct Case {
    std::string name;
    std::function<void(PlanSettings&, const PlanInput&)> change;
    std::function<void(PlanSettings&, const PlanInput&)> otherwise =
        {};  // where the files do not hold what `change` asks for
  };
  const PlanInput now = sources.input(settings);
  double bytes = 0;
  for (const PlanLayer& layer : now.problem.layers) bytes += layer.table_bytes;
  std::vector<Case> cases{{"as it is", [](PlanSettings&, const PlanInput&) {}},
                          {"tables 2x", [](PlanSettings& s, const PlanInput&) { s.table_factor *= 2; }},
                          {"tables 5x", [](PlanSettings& s, const PlanInput&) { s.table_factor *= 5; }},
                          {"tables of 1 TB", [bytes](PlanSettings& s, const PlanInput&) { s.table_factor *= 1e12 / bytes; }},
                          {"a single stream", [](PlanSettings& s, const PlanInput&) { s.sessions = 1; }}};
  for (const std::uint32_t b : {8u, 32u, 64u, 128u, 256u})
    cases.push_back({fmt::format("B = {}", b), [b](PlanSettings& s, const PlanInput&) { s.sessions = b; }});
  for (const std::uint32_t k : {2u, 4u})
    cases.push_back({fmt::format("{} tenants", k), [k](PlanSettings& s, const PlanInput&) { s.tenants *= k; }});
  // Pages of that many tokens a step where the misses hold them; else as of so many times the sessions, which repeat fewer
  // rows.
  for (const std::uint32_t q : {2u, 4u})
    cases.push_back({fmt::format("q = {} (drafts verified)", q * now.tokens_per_session),
                     [q](PlanSettings& s, const PlanInput& i) { s.tokens_per_session = i.tokens_per_session * q; },
                     [q](PlanSettings& s, const PlanInput& i) { s.sessions = i.sessions * q; }});
  Table table;
  table.title = "What if";
  table.columns = {
      {"case", "", Align::left, ""},   {"decision", "", Align::left, ""},         {"plan", "", Align::left, "", 44},
      {"mean", "%", Align::right, ""}, {"all resident", "GiB", Align::right, ""}, {"host then", "GiB", Align::right, ""}};
  const auto row = [&](const std::string& name, const PlanInput& input) -> std::vector<Cell> {
    const PlanOutcome outcome = plan_tables(input.problem, 1);
    Cell mean = Cell::number(pct(input.problem, outcome.chosen.predicted.mean_ms), 2, true);
    if (outcome.chosen.predicted.extrapolates) mean.mark = "*";
    const bool kept = outcome.decision == Decision::keep;
    return {name,
            to_string(outcome.decision),
            (kept ? "nearest: " : "") + describe(input.problem, outcome.chosen.candidate),
            mean,
            Cell::number((outcome.baseline.host_bytes + outcome.baseline.device_bytes) / bytes_per_gib, 0),
            Cell::number((kept ? outcome.baseline : outcome.chosen).host_bytes / bytes_per_gib, 0)};
  };
  const auto changed = [&](const std::function<void(PlanSettings&, const PlanInput&)>& change) {
    PlanSettings other = settings;
    change(other, now);
    return sources.input(other);
  };
  for (const Case& one : cases) {
    try {
      table.rows.push_back(row(one.name, changed(one.change)));
      continue;
    } catch (const InputError& error) {
      if (!one.otherwise) {
        table.footnotes.push_back(fmt::format("{}: {}", one.name, error.what()));
        continue;
      }
    }
    try {
      table.rows.push_back(row(one.name + ", not measured", changed(one.otherwise)));
    } catch (const InputError& error) {
      table.footnotes.push_back(fmt::format("{}: {}", one.name, error.what()));
    }
  }
  table.footnotes.push_back(
      "pages grow with tokens a step unless the misses file holds that batch, windows are the probe's nearest batch's, hit "
      "rates of larger tables are taken as today's; q, not measured: pages of as many more sessions (misses "
      "--tokens-per-session measures it); *: beyond the pages that were measured");
  return table;
}

Envelope placement_envelope(const PlanInput& input, const PlanOutcome& outcome) {
  const PlanProblem& problem = input.problem;
  const Plan& plan = outcome.chosen;
  Placement placement;
  placement.name = describe(problem, plan.candidate);
  const auto policies = directory_policies();
  if (std::find(policies.begin(), policies.end(), input.policy) != policies.end()) placement.cache_policy = input.policy;
  for (std::size_t l = 0; l < problem.layers.size(); ++l) {
    const LayerChoice& choice = plan.candidate.layers[l];
    LayerPlacement layer;
    if (choice.reads) {
      const ReadOffer& offer = problem.reads[choice.offer];
      layer.source = offer.source;
      layer.disks = offer.disks;
      layer.threads = offer.threads;
      layer.cache_rows_per_rank = static_cast<std::uint64_t>(std::max(0.0, choice.cache_rows));
      if (offer.tenants > 1) layer.wrappers = {fmt::format("shared:tenants={}", offer.tenants)};
    } else {
      layer.source = problem.residents[choice.offer].source;
      if (layer.source == "peer") layer.peer = "cuda:1";
    }
    placement.layers[problem.layers[l].k] = layer;
  }
  Envelope envelope;
  envelope.kind = "placement";
  envelope.results = to_json(placement);
  envelope.results["predicted"] = {{"mean_ms", plan.predicted.mean_ms},
                                   {"p99_ms", plan.predicted.p99_known ? Json(plan.predicted.p99_ms) : Json(nullptr)},
                                   {"lo_ms", plan.predicted.lo_ms},
                                   {"hi_ms", plan.predicted.hi_ms}};
  if (!plan.predicted.p99_known) envelope.results["predicted"]["reason"] = "p99: too few samples in reads or misses";
  envelope.results["decision"] = to_string(outcome.decision);
  envelope.results["host_bytes"] = static_cast<std::int64_t>(plan.host_bytes);
  envelope.settings = {{"model", input.model.empty() ? Json(nullptr) : Json(input.model)},
                       {"table", input.spec.name},
                       {"table_fingerprint", input.spec.fingerprint()},
                       {"ranks", problem.ranks},
                       {"shard_map", problem.shard_maps[plan.candidate.shard_map]},
                       {"labels", input.labels},
                       {"sessions", input.sessions},
                       {"tokens_per_session", input.tokens_per_session}};
  envelope.warnings = input.warnings;
  return envelope;
}

}  // namespace slacktier

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <tuple>

#include "harness/planner.hpp"
#include "harness/planner/predict.hpp"
#include "reports/error.hpp"

namespace slacktier {
namespace {

double price(const PlanProblem& problem, const std::string& source) {
  const auto found = problem.price_per_gib.find(source);
  return found == problem.price_per_gib.end() ? 0 : found->second;
}

double counted(const PlanProblem& problem, const Plan& plan) {
  if (!problem.price_per_gib.empty()) return plan.cost;
  return problem.residents.front().source == "dram" ? plan.host_bytes : plan.device_bytes;
}

// Less than this apart is the same: directories and caches of a few MB do not decide where a table lives.
double same_within(const PlanProblem& problem) {
  double bytes = 0;
  for (const PlanLayer& layer : problem.layers) bytes += layer.table_bytes;
  return problem.price_per_gib.empty() ? 0.005 * bytes
                                       : 0.005 * bytes / bytes_per_gib * price(problem, problem.residents.front().source);
}

double bucket(const PlanProblem& problem, double amount) {
  const double width = same_within(problem);
  return width > 0 ? std::floor(amount / width) : amount;
}

double mean_pct(const PlanProblem& problem, const Plan& plan) { return 100 * plan.predicted.mean_ms / problem.step_ms; }
double p99_pct(const PlanProblem& problem, const Plan& plan) {
  return 100 * plan.predicted.p99_ms / baseline_p99_ms(problem);
}
double excess(const PlanProblem& problem, const Plan& plan) {
  return std::max({0.0, mean_pct(problem, plan) - problem.mean_bound_pct, p99_pct(problem, plan) - problem.p99_bound_pct});
}

std::tuple<double, double, double> size_of(const PlanProblem& problem, const Candidate& candidate) {
  double disks = 0, threads = 0, rows = 0;
  for (const LayerChoice& choice : candidate.layers) {
    if (!choice.reads) continue;
    disks = std::max(disks, static_cast<double>(problem.reads[choice.offer].disks));
    threads = std::max(threads, static_cast<double>(problem.reads[choice.offer].threads));
    rows += choice.cache_rows;
  }
  return {disks, threads, rows};
}

Plan changed(const PlanProblem& problem, Candidate candidate, const std::function<void(Candidate&)>& change) {
  change(candidate);
  return evaluate(problem, candidate);
}

// What takes the binding layer's wait away, each with the slowdown that is left.
std::vector<std::string> unbinding(const PlanProblem& problem, const Plan& plan) {
  std::vector<std::string> ways;
  if (!plan.predicted.any_read) return ways;
  const LayerChoice& bound = plan.candidate.layers[plan.predicted.binding];
  const int k = problem.layers[plan.predicted.binding].k;
  const ReadOffer& offer = problem.reads[bound.offer];
  const auto left = [&](const Plan& other) { return fmt::format("{:+.2f}%", mean_pct(problem, other)); };
  const double now = plan.predicted.mean_ms;
  const auto better = [&](const Plan& other) {
    return other.predicted.mean_ms < now - std::max(1e-3, 0.02 * std::abs(now));
  };

  std::optional<Plan> best;
  std::size_t best_offer = 0;
  for (std::size_t o = 0; o < problem.reads.size(); ++o) {
    const ReadOffer& other = problem.reads[o];
    if (other.source != offer.source || o == bound.offer) continue;
    const Plan tried = changed(problem, plan.candidate, [&](Candidate& candidate) {
      for (LayerChoice& choice : candidate.layers)
        if (choice.reads && choice.offer == bound.offer) choice.offer = o;
    });
    if (better(tried) && (!best || tried.predicted.mean_ms < best->predicted.mean_ms)) best = tried, best_offer = o;
  }
  if (best) ways.push_back(fmt::format("{} ({})", problem.reads[best_offer].name, left(*best)));

  // The fewest rows more for this layer that take it out of the binding place, or half of what it costs away.
  const auto with_rows = [&](double rows) {
    return changed(problem, plan.candidate,
                   [&](Candidate& candidate) { candidate.layers[plan.predicted.binding].cache_rows += rows; });
  };
  const double most = std::max(4 * problem.cache_rows, 4e6);
  if (now > 0) {
    double enough = most;
    if (with_rows(most).predicted.mean_ms <= now / 2) {
      double too_few = 0;
      for (int i = 0; i < 30 && enough - too_few > most / 1024; ++i) {
        const double middle = (too_few + enough) / 2;
        (with_rows(middle).predicted.mean_ms <= now / 2 ? enough : too_few) = middle;
      }
      ways.push_back(fmt::format("{:.2f} M cache rows more for layer {} ({})", enough / 1e6, k, left(with_rows(enough))));
    }
  }
  for (std::size_t map = 0; map < problem.shard_maps.size(); ++map) {
    if (map == plan.candidate.shard_map) continue;
    const Plan tried = changed(problem, plan.candidate, [&](Candidate& candidate) { candidate.shard_map = map; });
    if (better(tried)) ways.push_back(fmt::format("{} shards ({})", problem.shard_maps[map], left(tried)));
  }
  const Plan kept = changed(problem, plan.candidate, [&](Candidate& candidate) {
    candidate.layers[plan.predicted.binding] = LayerChoice{false, 0, 0};
  });
  if (better(kept))
    ways.push_back(fmt::format("layer {} in {} ({}; {:.1f} GiB)", k, problem.residents.front().source, left(kept),
                               problem.layers[plan.predicted.binding].table_bytes / bytes_per_gib));
  return ways;
}

void check(const PlanProblem& problem) {
  if (problem.layers.empty()) throw InputError("plan: the table has no layer");
  if (problem.residents.empty()) throw InputError("plan: there is no place for the baseline");
  if (!(problem.step_ms > 0)) throw InputError("plan: the baseline's step has no length");
  for (const PlanLayer& layer : problem.layers)
    if (layer.misses.size() != problem.shard_maps.size())
      throw InputError(fmt::format("plan: layer {} has miss curves of {} shard maps, there are {}", layer.k,
                                   layer.misses.size(), problem.shard_maps.size()));
}

}  // namespace

MissLinePoint pages_at(const MissLine& line, double rows) {
  MissLinePoint at = line.front();
  double least = line.front().pages;  // so far: the curve may not rise, whatever sampling says
  for (std::size_t i = 1; i < line.size(); ++i) {
    MissLinePoint here = line[i];
    here.pages = std::min(here.pages, least);
    if (rows < here.rows) {
      const double share = std::max(0.0, rows - at.rows) / (here.rows - at.rows);
      const auto between = [share](double a, double b) { return a + share * (b - a); };
      return {rows, between(at.pages, here.pages), between(at.spread, here.spread), between(at.error, here.error)};
    }
    at = here;
    least = here.pages;
  }
  return at;
}

Plan evaluate(const PlanProblem& problem, const Candidate& candidate, bool interval) {
  Plan plan;
  plan.candidate = candidate;
  for (std::size_t l = 0; l < candidate.layers.size(); ++l) {
    const LayerChoice& choice = candidate.layers[l];
    const PlanLayer& layer = problem.layers[l];
    if (choice.reads) {
      const std::string& source = problem.reads[choice.offer].source;
      plan.host_bytes += layer.directory_bytes;
      plan.disk_bytes += layer.page_bytes;
      plan.cost += layer.page_bytes / bytes_per_gib * price(problem, source) +
                   layer.directory_bytes / bytes_per_gib * price(problem, "dram");
    } else {
      const std::string& source = problem.residents[choice.offer].source;
      (source == "dram" ? plan.host_bytes : plan.device_bytes) += layer.table_bytes;
      plan.cost += layer.table_bytes / bytes_per_gib * price(problem, source);
    }
  }
  plan.predicted = planner::predict(problem, candidate);
  if (interval) planner::add_interval(problem, candidate, plan.predicted);
  return plan;
}

bool ranks_before(const PlanProblem& problem, const Plan& a, const Plan& b) {
  const double ours = bucket(problem, counted(problem, a)), theirs = bucket(problem, counted(problem, b));
  if (ours != theirs) return ours < theirs;
  // The other memory comes next.
  const double our_rest = bucket(problem, a.host_bytes + a.device_bytes),
               their_rest = bucket(problem, b.host_bytes + b.device_bytes);
  if (problem.price_per_gib.empty() && our_rest != their_rest) return our_rest < their_rest;
  if (a.predicted.mean_ms != b.predicted.mean_ms) return a.predicted.mean_ms < b.predicted.mean_ms;
  const auto a_size = size_of(problem, a.candidate), b_size = size_of(problem, b.candidate);
  if (a_size != b_size) return a_size < b_size;
  const auto latest = [](const Plan& plan) { return plan.predicted.late_ms[plan.predicted.binding]; };
  return latest(a) < latest(b);
}

bool within(const PlanProblem& problem, const Plan& plan) { return excess(problem, plan) == 0; }

bool certainly_within(const PlanProblem& problem, const Plan& plan) {
  return within(problem, plan) && plan.predicted.p99_known &&
         100 * plan.predicted.hi_ms / problem.step_ms <= problem.mean_bound_pct;
}

const char* to_string(Decision decision) {
  return decision == Decision::move ? "MOVE" : decision == Decision::keep ? "KEEP" : "UNSURE";
}

PlanOutcome plan_tables(const PlanProblem& problem, std::size_t most) {
  check(problem);
  PlanOutcome outcome;
  Candidate baseline;
  baseline.layers.resize(problem.layers.size());
  outcome.baseline = evaluate(problem, baseline);

  std::vector<Plan> inside, outside;
  for (const Candidate& candidate : candidates(problem)) {
    Plan plan = evaluate(problem, candidate);
    ++outcome.considered;
    (within(problem, plan) ? inside : outside).push_back(std::move(plan));
  }
  std::stable_sort(inside.begin(), inside.end(), [&](const Plan& a, const Plan& b) { return ranks_before(problem, a, b); });
  std::stable_sort(outside.begin(), outside.end(), [&](const Plan& a, const Plan& b) {
    const double ours = excess(problem, a), theirs = excess(problem, b);
    return ours != theirs ? ours < theirs : ranks_before(problem, a, b);
  });
  const auto saves = [&](const Plan& plan) {
    return bucket(problem, counted(problem, plan)) < bucket(problem, counted(problem, outcome.baseline));
  };

  const Plan* certain = nullptr;
  for (Plan& plan : inside) {
    if (!saves(plan)) break;  // those that follow save no more
    planner::add_interval(problem, plan.candidate, plan.predicted);
    if (!certainly_within(problem, plan)) continue;
    certain = &plan;
    break;
  }
  const auto nearest = std::find_if(outside.begin(), outside.end(), saves);
  if (certain) {
    outcome.decision = Decision::move;
    outcome.chosen = *certain;
  } else if (!inside.empty() && saves(inside.front())) {
    outcome.decision = Decision::unsure;
    outcome.chosen = inside.front();
  } else {
    outcome.decision = Decision::keep;
    outcome.chosen = nearest == outside.end() ? outcome.baseline : *nearest;
  }
  planner::add_interval(problem, outcome.chosen.candidate, outcome.chosen.predicted);
  outcome.unbind = unbinding(problem, outcome.chosen);
  for (const std::vector<Plan>* group : {&inside, &outside})
    for (const Plan& plan : *group)
      if (outcome.ranked.size() < most) {
        outcome.ranked.push_back(plan);
        planner::add_interval(problem, plan.candidate, outcome.ranked.back().predicted);
      }
  return outcome;
}

std::string describe(const PlanProblem& problem, const Candidate& candidate) {
  std::vector<std::string> parts;
  bool any_read = false;
  for (std::size_t l = 0; l < candidate.layers.size();) {
    const LayerChoice& choice = candidate.layers[l];
    std::size_t last = l;
    while (last + 1 < candidate.layers.size() && candidate.layers[last + 1] == choice) ++last;
    // Two tables are named each; a run of many is named by its ends.
    const bool many = last - l >= 2;
    if (!many) last = l;
    const std::string who =
        many ? fmt::format("L{}–{}", problem.layers[l].k, problem.layers[last].k) : fmt::format("L{}", problem.layers[l].k);
    if (choice.reads) {
      any_read = true;
      parts.push_back(fmt::format("{} {}{}", who, problem.reads[choice.offer].name,
                                  choice.cache_rows > 0 ? fmt::format(", {:.2f} M rows", choice.cache_rows / 1e6) : ""));
    } else {
      parts.push_back(fmt::format("{} {}", who, problem.residents[choice.offer].source));
    }
    l = last + 1;
  }
  std::string text = fmt::format("{}", fmt::join(parts, "; "));
  if (any_read && problem.shard_maps.size() > 1) text += fmt::format("; {}", problem.shard_maps[candidate.shard_map]);
  return text;
}

}  // namespace slacktier

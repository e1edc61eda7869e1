#include "harness/planner/measured.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>

#include "reports/averages.hpp"
#include "reports/error.hpp"
#include "reports/paper.hpp"
#include "reports/probability.hpp"

namespace slacktier::planner {
namespace {

constexpr double line_holds = 0.1;  // of the measured time: what the line may be off beyond the loads it was fitted to

// Standard deviation as a share of the mean, from the best tail there is. Fewer samples than a p99 needs: from the range.
double spread_of(const Distribution& t) {
  if (!t.mean || !(*t.mean > 0)) return 0;
  if (t.p99) return std::max(0.0, *t.p99 - *t.mean) / p99_in_deviations / *t.mean;
  if (t.p90) return std::max(0.0, *t.p90 - *t.mean) / 1.2815515655446004 / *t.mean;
  if (!t.max || t.n < 2) return 0;
  const double deviations = normal_quantile(1 - 0.5 / static_cast<double>(t.n));
  return std::max(0.0, *t.max - *t.mean) / std::max(1.0, deviations) / *t.mean;
}

// Batches that took far longer than their load's spread explains. A load's longest one is known, so it counts once a load.
void add_rare(ReadLine& line, const std::vector<const Distribution*>& loads) {
  double found = 0, batches = 0, held_us = 0;
  for (const Distribution* t : loads) {
    batches += static_cast<double>(t->n);
    if (!t->mean || !t->max) continue;
    const double beyond = *t->max - *t->mean;
    if (beyond <= 5 * spread_of(*t) * *t->mean) continue;
    ++found;
    held_us += beyond;
  }
  if (found == 0) return;
  // 95% of a Poisson count, by its square root.
  const auto square = [](double x) { return x * x; };
  line.rare = found / batches;
  line.rare_lo = square(std::sqrt(found) - 0.98) / batches;
  line.rare_hi = square(std::sqrt(found + 1) + 0.98) / batches;
  line.rare_ms = held_us / found / 1e3;
}

bool remote(const std::string& source) { return source == "rdma" || source == "tcp"; }

std::string name_of(const ReadResult& result) {
  std::string name = result.source;
  if (!remote(result.source) && result.disks > 1) name += fmt::format(" {} disks", result.disks);
  if (result.threads > 1) name += fmt::format(" {} threads", result.threads);
  return name;
}

}  // namespace

const MissesResult& decode_misses(const std::vector<MissesResult>& results, const std::string& workload,
                                  const std::string& policy, std::optional<std::uint32_t> sessions,
                                  std::optional<std::uint32_t> tokens_per_session, const std::string& file) {
  std::vector<const MissesResult*> fitting;
  std::set<std::string> workloads, policies;
  std::set<std::uint32_t> tokens;
  for (const MissesResult& one : results)
    if (one.phase == "decode" && one.cache == "shared") workloads.insert(one.workload), fitting.push_back(&one);
  if (fitting.empty())
    throw InputError(
        fmt::format("{}: results: none is of phase decode with a shared cache: measure with --phase decode", file));
  const auto keep = [&](const auto& wanted) { std::erase_if(fitting, [&](const auto* one) { return !wanted(*one); }); };
  if (workload.empty() && workloads.size() > 1)
    throw InputError(
        fmt::format("{}: results: of workloads {}: name one with --workload", file, fmt::join(workloads, ", ")));
  if (!workload.empty()) keep([&](const MissesResult& one) { return one.workload == workload; });
  if (fitting.empty())
    throw InputError(
        fmt::format("{}: results: none of workload {}; there are {}", file, workload, fmt::join(workloads, ", ")));
  for (const auto* one : fitting) policies.insert(one->policy), tokens.insert(one->q);
  const std::string meant = !policy.empty() ? policy : policies.contains("clock") ? "clock" : fitting.front()->policy;
  keep([&](const MissesResult& one) { return one.policy == meant; });
  if (fitting.empty())
    throw InputError(fmt::format("{}: results: none of policy {}; there are {}", file, policy, fmt::join(policies, ", ")));
  if (tokens_per_session) keep([&](const MissesResult& one) { return one.q == *tokens_per_session; });
  if (fitting.empty())
    throw InputError(
        fmt::format("{}: results: q is {}, {} tokens a session and step are asked for: measure them with misses --q", file,
                    fmt::join(tokens, ", "), *tokens_per_session));
  if (!sessions) return *fitting.front();
  return **std::min_element(fitting.begin(), fitting.end(), [&](const auto* a, const auto* b) {
    const auto away = [&](const MissesResult& one) { return std::abs(std::log(double(one.sessions) / double(*sessions))); };
    return away(*a) < away(*b);
  });
}

const MissesResult* prefill_misses(const std::vector<MissesResult>& results, const MissesResult& decode) {
  for (const MissesResult& one : results)
    if (one.phase == "prefill" && one.workload == decode.workload && one.policy == decode.policy && one.cache == "shared")
      return &one;
  return nullptr;
}

std::vector<MissLine> miss_lines(const MissesResult& result, int k, double factor, const std::string& file,
                                 bool& p99_known) {
  const auto layer =
      std::find_if(result.layers.begin(), result.layers.end(), [&](const LayerMisses& one) { return one.k == k; });
  if (layer == result.layers.end())
    throw InputError(
        fmt::format("{}: results.layers: has no misses of layer {}: measure them with misses --layers {}", file, k, k));
  std::vector<MissLine> lines;
  for (const RankMisses& rank : layer->ranks) {
    MissLine line;
    double uncached = 0;
    for (const MissPoint& point : rank.curve) {
      if (!point.pages_mean) continue;
      MissLinePoint made;
      made.rows = static_cast<double>(point.rows);
      made.pages = *point.pages_mean * factor;
      if (line.empty()) uncached = made.pages;
      if (point.pages_p99) {
        made.spread = std::max(0.0, *point.pages_p99 - *point.pages_mean) / p99_in_deviations * std::sqrt(factor);
      } else {
        made.spread = std::sqrt(made.pages);  // as independent misses would
        p99_known = false;
      }
      // Steps follow one another: a tenth of them counts as independent.
      if (result.steps && *result.steps > 0)
        made.error = 1.96 * made.spread / std::sqrt(static_cast<double>(*result.steps) / 10);
      if (result.sampled && result.sampled->error)
        made.error = std::hypot(made.error, 1.96 * *result.sampled->error * uncached);
      line.push_back(made);
    }
    if (line.empty())
      throw InputError(fmt::format("{}: results.layers: layer {}, rank {}: no point has pages_mean", file, k, rank.rank));
    lines.push_back(std::move(line));
  }
  if (lines.empty()) throw InputError(fmt::format("{}: results.layers: layer {} has no rank", file, k));
  return lines;
}

std::vector<MeasuredReads> measured_reads(const Envelope& envelope, const std::vector<PlanLayer>& layers) {
  std::vector<MeasuredReads> all;
  std::set<int> missing;
  for (const ReadResult& result : read_results(envelope)) {
    if (result.verify == "unstamped")
      throw InputError(
          fmt::format("{}: results.verify: is unstamped: nothing proves that these reads brought the pages meant; "
                      "measure a staged image",
                      envelope.file));
    MeasuredReads one;
    one.source_is_remote = remote(result.source);
    if (result.steady && !*result.steady) one.unsteady = result.unmet.empty() ? "the disk was not at rest" : result.unmet;
    one.offer.source = result.source;
    one.offer.name = name_of(result);
    one.offer.disks = static_cast<std::uint32_t>(result.disks);
    one.offer.threads = static_cast<int>(result.threads);
    one.offer.ranks_on_disk = static_cast<int>(result.ranks_on_disk);
    one.offer.tenants = static_cast<int>(result.tenants);
    for (const PlanLayer& layer : layers) {
      const auto fit = std::find_if(result.fit.begin(), result.fit.end(), [&](const ReadFit& f) { return f.k == layer.k; });
      if (fit == result.fit.end()) {
        missing.insert(layer.k);
        continue;
      }
      ReadLine line;
      line.a_ms = fit->a_us / 1e3;
      for (const auto& [k, b] : fit->b_us) line.b_ms[k] = b / 1e3;
      line.error_ms = 1.96 * fit->rmse_us.value_or(0) / 1e3;
      for (const auto& [k, pages] : fit->range)
        line.range[k] = {static_cast<double>(pages.first), static_cast<double>(pages.second)};
      // A prefill's pages are no part of the fit. Where the line meets their time, it holds up to there.
      for (const ReadPoint& point : result.points) {
        const auto t = point.t_us.find(layer.k);
        if (t == point.t_us.end() || !t->second.mean || !fit->extrapolates(point.pages_per_rank)) continue;
        if (std::abs(fit->at(point.pages_per_rank) / *t->second.mean - 1) > line_holds) continue;
        for (auto& [k, pages] : line.range)
          if (const auto n = point.pages_per_rank.find(k); n != point.pages_per_rank.end())
            pages.second = std::max(pages.second, static_cast<double>(n->second));
      }
      one.offer.p99_known = false;
      std::vector<double> spreads;
      std::vector<const Distribution*> loads;
      for (const ReadPoint& point : result.points)
        if (const auto t = point.t_us.find(layer.k); t != point.t_us.end() && t->second.mean) {
          spreads.push_back(spread_of(t->second));
          loads.push_back(&t->second);
          one.offer.p99_known = one.offer.p99_known || t->second.p99.has_value();
        }
      if (!spreads.empty()) line.spread = median(spreads);
      add_rare(line, loads);
      one.offer.lines[layer.k] = line;
    }
    if (one.offer.lines.size() == layers.size()) all.push_back(std::move(one));
  }
  if (all.empty())
    throw InputError(
        fmt::format("{}: results.fit: is missing for layer(s) {}: measure with slacktier-iobench sweep --pages "
                    "LAYER:PAGES,… of these layers",
                    envelope.file, fmt::join(missing, ", ")));
  return all;
}

std::vector<MeasuredReads> paper_reads(const std::vector<PlanLayer>& layers) {
  for (const PlanLayer& layer : layers)
    if (layer.k != 1 && layer.k != 14)
      throw InputError(fmt::format("--assume-paper reads: the paper has none of layer {}", layer.k));
  const Json& fit = paper_values().at("fit_T1");
  const Json& uncached = paper_values().at("read_time_ms_B128");
  const double a = fit.at("intercept_ms").get<double>();
  const double b1 = fit.at("us_per_P1_page").get<double>() / 1e3, b14 = fit.at("us_per_P14_page").get<double>() / 1e3;
  // Uncached, both layers read about as many pages: as many as T1 = 2.34 ms says; T14 then grows evenly with either.
  const double pages = (uncached.at("L1_nvme_uncached").get<double>() - a) / (b1 + b14);
  const double either = (uncached.at("L14_nvme_uncached").get<double>() - a) / (2 * pages);
  MeasuredReads nvme, rdma;
  nvme.offer = {"uring", "uring", 1, 1, 4, 1, {}, true};
  rdma.offer = {"rdma", "rdma", 1, 4, 1, 1, {}, true};
  rdma.source_is_remote = true;
  const Json& far = uncached.at("rdma_uncached");
  const Json& far_pages = uncached.at("rdma_pages_per_rank_layer");
  const double slope =
      (far[1].get<double>() - far[0].get<double>()) / (far_pages[1].get<double>() - far_pages[0].get<double>());
  for (const PlanLayer& layer : layers) {
    ReadLine line;
    line.a_ms = a;
    if (layer.k == 1)
      line.b_ms = {{1, b1}, {14, b14}};
    else
      line.b_ms = {{1, either}, {14, either}};
    line.error_ms = 0.1;
    line.spread = 0.05;
    nvme.offer.lines[layer.k] = line;
    ReadLine remote_line;
    remote_line.a_ms = far[0].get<double>() - slope * far_pages[0].get<double>();
    remote_line.b_ms = {{layer.k, slope}};
    remote_line.error_ms = 0.02;
    remote_line.spread = 0.05;
    rdma.offer.lines[layer.k] = remote_line;
  }
  return {nvme, rdma};
}

}  // namespace slacktier::planner

#include "harness/plan_input.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>

#include "harness/planner/measured.hpp"
#include "reports/error.hpp"
#include "reports/paper.hpp"
#include "tier/pages.hpp"

namespace slacktier {
namespace {

// A file that names its table names the one that is planned.
void check_table(const Envelope& envelope, const TableSpec& spec) {
  const auto table = envelope.settings.find("table");
  if (table == envelope.settings.end() || !table->is_string() || table->get<std::string>() == spec.name) return;
  throw InputError(
      fmt::format("{}: settings.table: is {}, the plan is for {}: measure that table, or name this one with --table",
                  envelope.file, table->dump(), spec.name));
}

std::string host_of(const Envelope& envelope) {
  const auto host = envelope.provenance.find("host");
  if (host == envelope.provenance.end() || !host->is_object()) return "";
  return host->value("hostname", "");
}

PlanProblem start(const PlanSettings& settings, const TableSpec& spec) {
  PlanProblem problem;
  problem.shard_maps.clear();
  problem.cache_rows = settings.cache_rows;
  problem.mean_bound_pct = settings.mean_bound_pct;
  problem.p99_bound_pct = settings.p99_bound_pct;
  problem.price_per_gib = settings.price_per_gib;
  const PageGeometry geometry = make_page_geometry(4096, spec.row_bytes);
  for (const LayerTable& table : spec.layers) {
    PlanLayer layer;
    layer.k = table.layer;
    const double rows = static_cast<double>(table.rows) * settings.table_factor;
    layer.table_bytes = rows * spec.row_bytes;
    layer.page_bytes = std::ceil(rows / geometry.rows_per_page) * geometry.page_bytes;
    layer.directory_bytes = rows * sizeof(std::uint32_t);
    problem.layers.push_back(layer);
  }
  return problem;
}

void add_residents(PlanProblem& problem, const PlanSettings& settings) {
  if (settings.baseline != "dram" && settings.baseline != "hbm")
    throw InputError(fmt::format("--baseline {}: dram or hbm", settings.baseline));
  ResidentOffer dram{"dram", 0, 0}, hbm{"hbm", settings.hbm_gib.value_or(0) * bytes_per_gib, 0};
  if (settings.baseline == "dram") {
    problem.residents = {dram};
    if (settings.hbm_gib) problem.residents.push_back(hbm);
  } else {
    // What the zero-copy gather from host memory takes of a step, both layers: the paper's range, in the middle.
    const Json& range = paper_values().at("dram_gather_us_per_step");
    dram.cost_ms = (range[0].get<double>() + range[1].get<double>()) / 2e3 / static_cast<double>(problem.layers.size());
    hbm.capacity_bytes = 0;
    problem.residents = {hbm, dram};
  }
  if (settings.peer_gib) problem.residents.push_back({"peer", *settings.peer_gib * bytes_per_gib, 0});
}

}  // namespace

PlanSources::PlanSources(const PlanFiles& files) : files_(files) {
  if (files.windows.empty() && !files.paper_windows)
    throw InputError(
        "plan: no windows: name a file of slacktier-probe windows with --windows, or say --assume-paper windows");
  if (files.reads.empty() && !files.paper_reads)
    throw InputError(
        "plan: no read times: name a file of slacktier-iobench sweep with --reads, or say --assume-paper reads");
  if (files.misses.empty()) throw InputError("plan: no misses: name a file of slacktier-harness misses with --misses");
  if (!files.windows.empty()) windows_ = read_envelope(files.windows, "windows");
  for (const std::string& file : files.reads) reads_.push_back(read_envelope(file, "reads"));
  for (const std::string& file : files.misses) misses_.push_back(read_envelope(file, "misses"));
  if (!files.exposure.empty()) exposure_ = exposure_of(read_envelope(files.exposure, "exposure"));
}

void PlanSources::add_windows(PlanInput& input, const PlanSettings&) const {
  PlanProblem& problem = input.problem;
  const std::uint32_t batch = input.sessions * input.tokens_per_session;
  if (!windows_) {
    const PaperWindows paper = paper_windows();
    problem.step_ms = paper.step_ms;
    for (PlanLayer& layer : problem.layers) {
      const auto found = paper.window_ms.find(layer.k);
      if (found == paper.window_ms.end())
        throw InputError(fmt::format("--assume-paper windows: the paper has none of layer {}", layer.k));
      layer.window_ms = layer.lo_ms = layer.hi_ms = found->second;
    }
    input.labels.push_back("windows: the paper's 4xH200 (B = 128), not this machine");
    input.warnings.push_back({"windows_assumed", input.labels.back(), ""});
    if (batch != 128)
      input.warnings.push_back({"windows_other_batch", fmt::format("windows: of B = 128, the plan is for {}", batch), ""});
    return;
  }
  check_table(*windows_, input.spec);
  const std::vector<WindowsResult> results = windows_results(*windows_);
  const WindowsResult* chosen = &results.front();
  for (const WindowsResult& one : results)
    if (std::abs(one.batch - std::int64_t{batch}) < std::abs(chosen->batch - std::int64_t{batch})) chosen = &one;
  problem.step_ms = chosen->step_ms;
  if (chosen->step && chosen->step->p99 && chosen->step->mean)
    problem.step_spread_ms = std::max(0.0, *chosen->step->p99 - *chosen->step->mean) / p99_in_deviations;
  input.labels.push_back(fmt::format("windows: {} (batch {})", windows_->file, chosen->batch));
  if (chosen->batch != batch)
    input.warnings.push_back(
        {"windows_other_batch",
         fmt::format("windows: of batch {}, the plan is for {}; probe that batch", chosen->batch, batch), ""});
  for (PlanLayer& layer : problem.layers) {
    const auto found =
        std::find_if(chosen->layers.begin(), chosen->layers.end(), [&](const LayerWindow& w) { return w.k == layer.k; });
    if (found == chosen->layers.end()) {
      if (layer.k == 0) continue;  // part of the input: needed when the step begins
      throw InputError(
          fmt::format("{}: results.layers: has no window of layer {}, which reads a table: probe it with "
                      "slacktier-probe windows --layers {}",
                      windows_->file, layer.k, layer.k));
    }
    if (found->w_ms) {
      layer.window_ms = *found->w_ms;
      layer.lo_ms = found->lo_ms.value_or(layer.window_ms);
      layer.hi_ms = found->hi_ms.value_or(layer.window_ms);
    } else if (found->status != "no-window") {
      throw InputError(fmt::format("{}: results.layers: the window of layer {} is '{}' ({}): probe it again", windows_->file,
                                   layer.k, found->status, found->reason));
    }
    if (found->status == "noisy" || found->status == "disagree" || found->status == "assumed")
      input.warnings.push_back({"window_doubtful", fmt::format("the window of layer {} is {}", layer.k, found->status), ""});
  }
}

void PlanSources::add_misses(PlanInput& input, const PlanSettings& settings) const {
  PlanProblem& problem = input.problem;
  std::optional<std::uint32_t> ranks;
  for (const Envelope& envelope : misses_) {
    check_table(envelope, input.spec);
    const auto here = envelope.settings.value("ranks", std::uint32_t{1});
    if (ranks && *ranks != here)
      throw InputError(fmt::format("{}: settings.ranks: is {}, another misses file has {}", envelope.file, here, *ranks));
    ranks = here;
    const std::string map = envelope.settings.value("shard_map", std::string("contiguous"));
    const std::vector<MissesResult> results = misses_results(envelope);
    const MissesResult& decode = planner::decode_misses(results, settings.workload, settings.policy, settings.sessions,
                                                        settings.tokens_per_session, envelope.file);
    if (problem.shard_maps.empty()) {
      input.sessions = settings.sessions.value_or(decode.sessions);
      input.tokens_per_session = settings.tokens_per_session.value_or(decode.q);
      input.workload = decode.workload;
      input.policy = decode.policy;
      input.labels.push_back(fmt::format("misses: {}{}, {}, {} sessions", envelope.file,
                                         decode.workload.empty() ? "" : ", " + decode.workload, decode.policy,
                                         decode.sessions));
    }
    if (std::find(problem.shard_maps.begin(), problem.shard_maps.end(), map) != problem.shard_maps.end())
      throw InputError(fmt::format("{}: settings.shard_map: {} is in another misses file, too", envelope.file, map));
    if (decode.policy != input.policy || decode.workload != input.workload)
      throw InputError(fmt::format("{}: results: are of {} under {}, another misses file's of {} under {}", envelope.file,
                                   decode.workload, decode.policy, input.workload, input.policy));
    problem.shard_maps.push_back(map);
    const double factor = static_cast<double>(input.sessions) * input.tokens_per_session / (decode.sessions * decode.q);
    if (factor != 1)
      input.warnings.push_back(
          {"misses_scaled",
           fmt::format("pages: of {} sessions and {} tokens a step, scaled by {:.2f}", decode.sessions, decode.q, factor),
           ""});
    for (PlanLayer& layer : problem.layers)
      layer.misses.push_back(planner::miss_lines(decode, layer.k, factor, envelope.file, problem.p99_known));
    const std::size_t measured = problem.layers.front().misses.back().size();
    if (measured != here)
      input.warnings.push_back(
          {"ranks_not_measured",
           fmt::format("misses: {} of {} ranks were measured ({}); the slowest may be another", measured, here, map), ""});
    if (input.prefill.empty())
      if (const MissesResult* prefill = planner::prefill_misses(results, decode)) {
        bool ignored = true;
        for (const PlanLayer& layer : problem.layers)
          input.prefill.push_back(planner::miss_lines(*prefill, layer.k, 1, envelope.file, ignored));
        input.prefill_tokens = prefill->chunk_tokens.value_or(0);
      }
  }
  problem.ranks = ranks.value_or(1);
}

void PlanSources::add_reads(PlanInput& input, const PlanSettings& settings) const {
  PlanProblem& problem = input.problem;
  std::set<std::int64_t> ranks_on_disk;
  std::vector<planner::MeasuredReads> all;
  for (const Envelope& envelope : reads_) {
    check_table(envelope, input.spec);
    for (planner::MeasuredReads& one : planner::measured_reads(envelope, problem.layers)) {
      if (settings.ranks_on_disk && one.offer.ranks_on_disk != *settings.ranks_on_disk) continue;
      if (!one.unsteady.empty())
        input.warnings.push_back(
            {"reads_unsteady", fmt::format("reads: {}: no steady state: {}", one.offer.name, one.unsteady), ""});
      if (one.source_is_remote) {  // no disk that ranks could share
        all.push_back(std::move(one));
        continue;
      }
      ranks_on_disk.insert(one.offer.ranks_on_disk);
      all.push_back(std::move(one));
    }
    input.labels.push_back(fmt::format("reads: {}", envelope.file));
  }
  if (ranks_on_disk.size() > 1)
    throw InputError(fmt::format("reads: were measured with {} ranks on a disk: say which with --ranks-on-disk",
                                 fmt::join(ranks_on_disk, " and ")));
  if (!ranks_on_disk.empty() && *ranks_on_disk.begin() != problem.ranks)
    input.warnings.push_back(
        {"ranks_on_disk",
         fmt::format("reads: {} rank(s) on a disk, the table has {}: right where each has disks of its own",
                     *ranks_on_disk.begin(), problem.ranks),
         ""});
  if (files_.paper_reads) {
    for (planner::MeasuredReads& one : planner::paper_reads(problem.layers)) all.push_back(std::move(one));
    input.labels.push_back("reads: the paper's NVMe and RDMA (layer 14's line derived), not this machine");
    input.warnings.push_back({"reads_assumed", input.labels.back(), ""});
  }
  if (all.empty())
    throw InputError(fmt::format("reads: no entry with {} ranks on a disk", settings.ranks_on_disk.value_or(0)));
  const auto of_tenants = [&](int tenants) {
    std::vector<ReadOffer> offers;
    for (const planner::MeasuredReads& one : all)
      if (one.offer.tenants == tenants) offers.push_back(one.offer);
    return offers;
  };
  problem.reads = of_tenants(static_cast<int>(settings.tenants));
  if (problem.reads.empty()) {
    problem.reads = of_tenants(1);
    problem.read_factor = settings.tenants;
    if (problem.reads.empty()) throw InputError("reads: no entry of a single tenant to start from");
    input.warnings.push_back(
        {"tenants_scaled",
         fmt::format("reads: measured with one tenant; {} of them taken as so many times the pages", settings.tenants), ""});
  }
  for (const ReadOffer& offer : problem.reads)
    if (offer.source == "pread" || offer.source == "buffered")
      input.warnings.push_back({"fallback_source", fmt::format("reads: {} is a fallback, not io_uring", offer.name), ""});
}

void PlanSources::add_hosts(PlanInput& input) const {
  std::map<std::string, std::vector<std::string>> by_host;
  if (windows_) by_host[host_of(*windows_)].push_back("windows");
  for (const Envelope& envelope : reads_) by_host[host_of(envelope)].push_back("reads");
  by_host.erase("");
  if (by_host.size() < 2) return;
  std::vector<std::string> parts;
  for (const auto& [host, kinds] : by_host) parts.push_back(fmt::format("{} from {}", fmt::join(kinds, ", "), host));
  input.labels.push_back(fmt::format("hosts: {}", fmt::join(parts, "; ")));
}

PlanInput PlanSources::input(const PlanSettings& settings) const {
  PlanInput input;
  input.spec = load_table_spec(settings.table);
  input.problem = start(settings, input.spec);
  add_residents(input.problem, settings);
  add_misses(input, settings);
  add_windows(input, settings);
  add_reads(input, settings);
  add_hosts(input);
  PlanProblem& problem = input.problem;
  if (windows_ && windows_->settings.contains("model") && windows_->settings["model"].is_string())
    input.model = windows_->settings["model"].get<std::string>();
  if (settings.resolve_ms) {
    problem.resolve_ms = *settings.resolve_ms;
  } else {
    const Json& range = paper_values().at("directory").at("resolve_us_per_step_B128");
    problem.resolve_ms = (range[0].get<double>() + range[1].get<double>()) / 2e3;
    input.warnings.push_back(
        {"resolve_assumed",
         fmt::format("resolve time s: {:.2f} ms assumed (the paper's range); give yours with --resolve-ms",
                     problem.resolve_ms),
         ""});
  }
  if (exposure_) {
    problem.kappa_ms = exposure_->kappa_ms;
    problem.model_error_ms = 1.96 * exposure_->rmse_ms;
  } else {
    problem.model_error_ms = 0.2;
    input.warnings.push_back({"model_error_assumed",
                              "the exposure model's own error: 0.2 ms assumed (95%); fit it to your runs with exposure fit",
                              ""});
  }
  if (!problem.p99_known)
    input.warnings.push_back({"p99_unknown", "p99: the misses hold too few steps for one; no plan is certain", ""});
  for (const ReadOffer& offer : problem.reads)
    if (!offer.p99_known) {
      input.warnings.push_back(
          {"p99_unknown",
           fmt::format("p99: {} has too few batches for one (662 a load); no plan on it is certain", offer.name), ""});
      break;
    }
  return input;
}

std::optional<PrefillCost> PlanInput::prefill_cost(const Candidate& candidate) const {
  if (prefill.empty()) return {};
  PrefillCost cost;
  cost.chunk_tokens = prefill_tokens;
  const std::size_t n = problem.layers.size();
  for (std::size_t r = 0; r < prefill.front().size(); ++r) {
    std::vector<double> pages(n, 0.0);
    double sum = 0, read = 0;
    bool beyond = false;
    for (std::size_t l = 0; l < n; ++l)
      if (candidate.layers[l].reads) pages[l] = pages_at(prefill[l][r], candidate.layers[l].cache_rows).pages;
    for (std::size_t l = 0; l < n; ++l) {
      if (!candidate.layers[l].reads || pages[l] < 0.5) continue;
      const ReadLine& line = problem.reads[candidate.layers[l].offer].lines.at(problem.layers[l].k);
      // A chunk's layers are read one after another, each alone.
      const auto b = line.b_ms.find(problem.layers[l].k);
      read += line.a_ms + (b == line.b_ms.end() ? 0 : b->second) * pages[l] * problem.read_factor;
      const auto range = line.range.find(problem.layers[l].k);
      beyond = beyond || (range != line.range.end() && pages[l] > range->second.second);
      sum += pages[l];
    }
    cost.pages = std::max(cost.pages, sum);
    if (read > cost.read_ms) cost.read_ms = read;
    cost.extrapolates = cost.extrapolates || beyond;
  }
  return cost;
}

}  // namespace slacktier

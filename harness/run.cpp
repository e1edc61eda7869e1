#include "harness/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <numeric>
#include <random>
#include <set>

#include "harness/configuration.hpp"
#include "harness/hot_rows.hpp"
#include "harness/interleave.hpp"
#include "harness/resident_tables.hpp"
#include "harness/rig.hpp"
#include "harness/split_search.hpp"
#include "platforms/error.hpp"
#include "platforms/host.hpp"
#include "platforms/preflight.hpp"
#include "platforms/progress.hpp"
#include "platforms/provenance.hpp"
#include "reports/results_file.hpp"

namespace slacktier {
namespace {

std::int64_t as_count(std::uint64_t value) { return static_cast<std::int64_t>(value); }

std::optional<double> rate(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return {};
  return static_cast<double>(part) / static_cast<double>(whole);
}

class WorkloadRun {
 public:
  WorkloadRun(Device& device, const TableSpec& spec, const Campaign& campaign, const Workload& workload,
              const RunOptions& options, const Images& images, const ResidentTables& tables, const StepTrace& trace)
      : spec_(spec), campaign_(campaign), workload_(workload), options_(options), tables_(tables), trace_(trace) {
    for (const auto& placement : campaign.placements) {
      rigs_.push_back(std::make_unique<Rig>(device, spec, campaign, placement, options.model, images, tables));
      Progress progress(fmt::format("{}: warming {}", workload.name, placement.name), campaign.warm_steps,
                        ProgressUnit::steps, stderr_progress(options.quiet));
      rigs_.back()->warm(trace_, campaign.warm_steps);
      progress.advance(campaign.warm_steps);
      if (!options.control.empty() && rigs_.size() > 1) rigs_.back()->tier().watch_control(options.control);
    }
    if (options.controller) {
      std::error_code ignored;
      std::filesystem::remove(options.control, ignored);  // of a run before; this one begins with the placement's split
      search_ = std::make_unique<SplitSearch>(campaign.placements.back());
    }
    for (const auto& placement : campaign.placements) run_order_[placement.name].reserve(campaign.blocks);
  }

  // Every placement once a block, in an order drawn anew for each block. Ends early when asked to stop.
  void run(std::mt19937_64& random) {
    const std::uint64_t per_block = campaign_.lead_steps + campaign_.block_steps;
    Progress progress(fmt::format("{}: measuring", workload_.name), campaign_.blocks * per_block * rigs_.size(),
                      ProgressUnit::steps, stderr_progress(options_.quiet));
    double position = 0;
    std::vector<std::size_t> order(rigs_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::uint32_t block = 0; block < campaign_.blocks; ++block) {
      std::shuffle(order.begin(), order.end(), random);
      for (const std::size_t r : order) {
        Rig& rig = *rigs_[r];
        rig.begin_block();
        run_order_[rig.placement().name].push_back(position++);
        for (std::uint64_t s = 0; s < per_block; ++s) {
          if (options_.stop && options_.stop()) throw Interrupted();
          rig.step(trace_.step(campaign_.warm_steps + block * per_block + s), s >= campaign_.lead_steps);
          if (search_ && r + 1 == rigs_.size() && s >= campaign_.lead_steps) let_controller_see(rig);
          progress.advance();
          tell_control_news();
        }
      }
    }
  }

  // What the split controller saw and where it ended; null without one.
  Json controller() const { return search_ ? search_->describe() : Json(); }

  // Whole blocks that every placement has: an interrupted or failed run is compared on these.
  std::size_t common_blocks() const {
    std::size_t blocks = campaign_.blocks;
    for (const auto& rig : rigs_) {
      std::size_t whole = 0;
      for (const auto& block : rig->blocks()) whole += block.size() == campaign_.block_steps;
      blocks = std::min(blocks, whole);
    }
    return blocks;
  }

  void report(std::vector<ConfigurationResult>& out) {
    const std::size_t common = common_blocks();
    const Rig& baseline = *rigs_.front();
    for (const auto& rig : rigs_) out.push_back(configuration(*rig, baseline, common));
  }

  const StepTrace& trace() const { return trace_; }
  std::uint64_t mismatches() const {
    std::uint64_t sum = 0;
    for (const auto& rig : rigs_) sum += rig->checks().mismatches;
    return sum;
  }
  std::string first_mismatch() const {
    for (const auto& rig : rigs_)
      if (!rig->checks().first_mismatch.empty()) return rig->placement().name + ": " + rig->checks().first_mismatch;
    return {};
  }
  const std::vector<std::unique_ptr<Rig>>& rigs() const { return rigs_; }

  // What became of the control file's changes, in the order of its changes.
  std::vector<Warning> control_warnings() const {
    std::vector<Warning> warnings;
    for (const auto& rig : rigs_)
      for (const ControlNews& news : rig->tier().control_news())
        warnings.push_back({news.problem.empty() ? "control_applied" : "control_refused",
                            fmt::format("{}: {}", workload_.name, describe(*rig, news)), ""});
    return warnings;
  }

 private:
  void let_controller_see(const Rig& rig) {
    double stalled_us = 0;
    for (const LayerSamples& layer : rig.layers()) stalled_us += layer.stall_us.back();
    if (search_->step(stalled_us / 1e3)) write_text_file(options_.control, search_->control_file());
  }

  std::string describe(const Rig& rig, const ControlNews& news) const {
    const std::string at = fmt::format("{}, before its step {}", rig.placement().name, news.epoch);
    return news.problem.empty() ? fmt::format("{}: {} applied (change {})", at, options_.control, news.generation)
                                : fmt::format("{}: {}; the old values stay", at, news.problem);
  }

  void tell_control_news() {
    const auto& news = rigs_.back()->tier().control_news();
    for (; told_ < news.size(); ++told_) fmt::print(stderr, "slacktier-harness: {}\n", describe(*rigs_.back(), news[told_]));
  }

  ConfigurationResult configuration(Rig& rig, const Rig& baseline, std::size_t common) {
    ConfigurationResult result;
    result.name = rig.placement().name;
    result.workload = workload_.name;
    rig.drop_empty_block();
    if (&rig != &baseline) result.baseline = baseline.placement().name;
    add_step_times(result, rig.blocks(), &rig == &baseline ? nullptr : &baseline.blocks(), common,
                   run_order_[rig.placement().name], campaign_.seed, options_.samples_dir);
    result.placement = to_json(rig.placement());
    // A node runs all ranks of a layer: what one rank holds, times the ranks, is what the node needs.
    const HostMemoryCount memory = rig.tier().host_memory();
    result.host_memory.computed_full_geometry_bytes = as_count(memory.full_geometry * campaign_.ranks);
    result.host_memory.computed_bytes = as_count(memory.allocated);
    std::uint64_t tables = 0;
    for (std::size_t l = 0; l < spec_.layers.size(); ++l)
      if (const LayerPlacement& layer = rig.placement().layers.at(spec_.layers[l].layer); is_resident_source(layer.source))
        tables += tables_.measured_host_bytes(l, layer);
    result.host_memory.rss_bytes = as_count(rig.rss_growth() + tables);
    result.host_memory.registered_bytes = as_count(memory.registered);
    result.host_memory.measured_bytes = result.host_memory.rss_bytes;
    for (std::size_t l = 0; l < spec_.layers.size(); ++l) {
      LayerResult layer;
      layer.k = spec_.layers[l].layer;
      layer.window_ms = static_cast<double>(options_.model.window(layer.k)) / 1e6;
      layer.ranks = {
          rank_result(rig.layers()[l], campaign_.rank, rig.tier().core(l).resident(), !rig.placement().skip_unseen.empty())};
      result.layers.push_back(layer);
    }
    if (campaign_.prefill_reads) result.prefill = prefill_result(rig);
    result.mismatches = as_count(rig.checks().mismatches);
    result.checked_rows = as_count(rig.checks().checked);
    result.paper = paper_value(campaign_, rig.placement().name, workload_.name);
    return result;
  }

  PrefillResult prefill_result(Rig& rig) const {
    const PrefillSamples& samples = rig.prefills();
    PrefillResult result{as_count(samples.tokens), distribution(samples.chunk_ms), {}};
    for (std::size_t l = 0; l < spec_.layers.size(); ++l) {
      const PrefillSamples::Layer& in = samples.layers[l];
      PrefillLayerResult layer;
      layer.k = spec_.layers[l].layer;
      layer.rank = static_cast<int>(campaign_.rank);
      if (!rig.tier().core(l).resident()) {
        layer.hit_rate = rate(in.hits, in.owned);
        layer.reuse_rate = rate(in.reused, in.owned);
        layer.pages = distribution(in.pages);
        layer.waves = distribution(in.waves);
        layer.read_ms = distribution(in.read_ms);
      }
      layer.total_ms = distribution(in.total_ms);
      layer.status = in.status;
      result.layers.push_back(layer);
    }
    return result;
  }

  const TableSpec& spec_;
  const Campaign& campaign_;
  const Workload& workload_;
  const RunOptions& options_;
  const ResidentTables& tables_;
  const StepTrace& trace_;
  std::vector<std::unique_ptr<Rig>> rigs_;
  std::map<std::string, std::vector<double>> run_order_;
  std::unique_ptr<SplitSearch> search_;
  std::size_t told_ = 0;  // control news that were said
};

// The facts of what is read, and each finding about it once.
void look_at_storage(const Images& images, RunOutcome& outcome) {
  const HostFacts host = read_host_facts();
  const IoUringSupport io_uring = probe_io_uring();
  std::set<std::string> said;
  for (const auto& path : images.all_paths()) {
    const StorageFacts storage = read_storage_facts(path, image_header_bytes);
    outcome.disks.push_back(storage_json(storage));
    for (const Finding& finding : preflight(storage, host, io_uring))
      if (!finding.note && said.insert(finding.text()).second)
        outcome.envelope.warnings.push_back({finding.code, finding.text(), ""});
  }
}

// What the sources have to say beside their description: the page cache's state, extra and faulty reads.
void record_activity(Json& settings, const std::string& workload, const WorkloadRun& run, const char* when) {
  for (const auto& rig : run.rigs())
    for (std::size_t l = 0; l < rig->layers().size(); ++l)
      if (const std::string text = rig->tier().source_activity(l); !text.empty())
        settings["activity"][workload][rig->placement().name][std::to_string(rig->tier().spec().layers[l].layer)][when] =
            text;
}

Json settings_of(const Campaign& campaign, const TableSpec& spec, const Images& images, const StepModel& model,
                 const std::string& device) {
  Json settings = common_settings(campaign, spec, model, device);
  settings["measured_ranks"] = {campaign.rank};
  settings["checked"] = campaign.check;
  settings["image_bytes"] = campaign.image_bytes;
  settings["images"] = images.describe();
  settings["rows"] = images.rows().describe();
  return settings;
}

}  // namespace

RunOutcome run_campaign(Device& device, const Campaign& asked, const RunOptions& options) {
  validate(asked);
  if (options.controller || !options.control.empty())
    require_one_placement(asked, options.controller ? "--controller" : "--control " + options.control);
  Campaign campaign = asked;
  if (options.controller) campaign.placements.back() = with_room_to_split(campaign.placements.back());
  const TableSpec spec = load_table_spec(campaign.table);
  const int depth = static_cast<int>(options.model.layer_time.size());
  for (const auto& layer : spec.layers)
    if (layer.layer >= depth)
      throw UsageError(
          fmt::format("table {} is read at layer {}, the step model has {} layers", spec.name, layer.layer, depth));
  const TokenMap map = options.token_map.empty() ? TokenMap() : TokenMap::load(options.token_map, spec);

  // What the placements read, and the sessions, first: a file that cannot be used is said before gigabytes are staged.
  for (const auto& placement : campaign.placements) {
    if (!placement.hot_rows.empty()) read_hot_rows(placement.hot_rows, spec);
    if (!placement.skip_unseen.empty())
      SeenSet::load(placement.skip_unseen, spec, campaign.shard_map, campaign.ranks, campaign.rank);
  }
  std::vector<StepTrace> traces;
  for (const auto& workload : campaign.workloads)
    traces.push_back(record_steps(campaign, workload, spec, map, campaign.steps()));

  RunOutcome outcome;
  Envelope& envelope = outcome.envelope;
  envelope.kind = "results";
  const Images images(campaign, spec, options.images);
  if (options.verify_sample > 0) images.verify(spec, options.verify_sample, options.quiet);
  envelope.settings = settings_of(campaign, spec, images, options.model, device.facts().name);
  if (!options.control.empty()) envelope.settings["control"] = options.control;
  envelope.warnings = images.warnings();
  look_at_storage(images, outcome);
  if (!options.model.measured_here) envelope.warnings.push_back({"windows_assumed", options.model.label, "/settings/model"});
  if (!campaign.graph)
    envelope.warnings.push_back(
        {"no_graph", "no graph: every step's operations, the baseline's too, are queued one by one", "/settings/graph"});
  if (device.facts().backend == "cpu")
    envelope.warnings.push_back(
        {"device_cpu",
         "device: cpu; layers' compute is a timed wait; gather and hash run on host cores, where rows out of memory, as the "
         "baseline's, take a few tenths of a millisecond longer than rows just read",
         ""});
  for (std::size_t l = 0; l < spec.layers.size(); ++l) {
    const Shard shard = make_shard(spec, l, campaign.shard_map, campaign.ranks, campaign.rank);
    const std::uint64_t pages = images.geometry().pages(shard.rows);
    if (images.folds()[l].stored_pages < pages) {
      envelope.warnings.push_back(
          {"image_scaled",
           fmt::format("disk image and host table scaled to {:.1f}% of the table; row ids, hashes and directories are "
                       "at full geometry",
                       100.0 * static_cast<double>(images.folds()[l].stored_pages) / static_cast<double>(pages)),
           "/settings/image_bytes"});
      break;
    }
  }

  if (!images.servers().empty())
    envelope.warnings.push_back({"tables_remote",
                                 fmt::format("pages come from servers at {}, whatever a placement's name says of disks",
                                             fmt::join(images.servers(), ", ")),
                                 ""});
  for (const auto& placement : campaign.placements)
    if (!placement.skip_unseen.empty())
      envelope.warnings.push_back({"rows_skipped",
                                   fmt::format("{}: lossy: rows that are not in {} are delivered as zeros without a read",
                                               placement.name, placement.skip_unseen),
                                   ""});

  const ResidentTables tables(device, spec, campaign, images);

  std::vector<ConfigurationResult> results;
  std::mt19937_64 random(campaign.seed);
  for (std::size_t w = 0; w < campaign.workloads.size(); ++w) {
    const Workload& workload = campaign.workloads[w];
    WorkloadRun run(device, spec, campaign, workload, options, images, tables, traces[w]);
    envelope.settings["workloads"].push_back({{"name", workload.name}, {"sessions", run.trace().describe()}});
    if (workload.traces.empty() || run.trace().sessions_topped_up() > 0)
      envelope.warnings.push_back({"sessions_generated", fmt::format("{}: {}", workload.name, run.trace().describe()), ""});
    if (envelope.settings.contains("sources") == false)
      for (const auto& rig : run.rigs())
        for (std::size_t l = 0; l < spec.layers.size(); ++l)
          envelope.settings["sources"][rig->placement().name][std::to_string(spec.layers[l].layer)] =
              rig->tier().describe_source(l);
    record_activity(envelope.settings, workload.name, run, "begin");
    try {
      run.run(random);
    } catch (const Interrupted&) {
      outcome.interrupted = true;
      envelope.warnings.push_back(
          {"interrupted", "interrupted: the run ended early; whole blocks that every placement has are compared", ""});
    } catch (const DeviceError& error) {
      outcome.failure = error.what();
      envelope.warnings.push_back({"device_failure", error.what(), ""});
    }
    record_activity(envelope.settings, workload.name, run, "end");
    run.report(results);
    for (const Warning& warning : run.control_warnings()) envelope.warnings.push_back(warning);
    if (options.controller) envelope.settings["controller"][workload.name] = run.controller();
    outcome.mismatches += run.mismatches();
    if (run.mismatches() > 0) envelope.warnings.push_back({"mismatches", run.first_mismatch(), ""});
    if (outcome.interrupted || !outcome.failure.empty()) break;
  }
  set_configurations(envelope, results);
  return outcome;
}

std::vector<std::string> plan_campaign(const Campaign& campaign, const RunOptions& options) {
  const TableSpec spec = load_table_spec(campaign.table);
  const double step_s = static_cast<double>(options.model.step()) / 1e9;
  const double steps = static_cast<double>(campaign.workloads.size() * campaign.placements.size()) * campaign.blocks *
                       (campaign.lead_steps + campaign.block_steps);
  std::uint64_t directory = 0;
  for (std::size_t l = 0; l < spec.layers.size(); ++l)
    directory += make_shard(spec, l, campaign.shard_map, campaign.ranks, campaign.rank).rows * sizeof(std::uint32_t);
  std::uint64_t directories = 0;
  for (const auto& placement : campaign.placements) directories += placement.all_dram() ? 0 : directory;
  std::vector<std::string> lines;
  lines.push_back(fmt::format("campaign {}: {}", campaign.name, campaign.summary));
  lines.push_back(fmt::format("stages up to {:.1f} GiB per number of disks in {}",
                              static_cast<double>(campaign.image_bytes) / (1 << 30),
                              options.images.disks.empty() ? "-" : options.images.disks.front()));
  lines.push_back(fmt::format("host memory: {:.1f} GiB of tables, up to {:.1f} GiB of directories",
                              static_cast<double>(campaign.image_bytes) / (1 << 30),
                              static_cast<double>(directories) / (1 << 30)));
  lines.push_back(fmt::format("runs {:.0f} steps, about {:.0f} s", steps, steps * step_s * 1.15));
  return lines;
}

}  // namespace slacktier

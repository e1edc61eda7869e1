#include "reports/results_file.hpp"

#include <cstdint>

#include <fmt/format.h>

#include "reports/error.hpp"
#include "reports/field_reader.hpp"

namespace slacktier {
namespace {

// The distributions of a rank, with their names.
constexpr std::pair<const char*, Distribution RankResult::*> rank_distributions[] = {
    {"resolve_us", &RankResult::resolve_us},
    {"t_submit_us", &RankResult::t_submit_us},
    {"t_done_us", &RankResult::t_done_us},
    {"t_open_us", &RankResult::t_open_us},
    {"stall_us", &RankResult::stall_us}};

Json write(const RankResult& rank) {
  Json json = {{"rank", rank.rank},
               {"lookups", rank.lookups},
               {"owned", rank.owned},
               {"hit_rate", or_null(rank.hit_rate)},
               {"reuse_rate", or_null(rank.reuse_rate)},
               {"miss_pages_per_step", to_json(rank.miss_pages_per_step)},
               {"p_any_miss", or_null(rank.p_any_miss)}};
  if (rank.skipped) json["skipped"] = *rank.skipped;
  for (const auto& [name, member] : rank_distributions) json[name] = to_json(rank.*member);
  json["status"] = rank.status;
  return json;
}

RankResult read_rank(const FieldReader& in) {
  RankResult rank;
  rank.rank = in.get<int>("rank");
  rank.lookups = in.get<std::int64_t>("lookups");
  rank.owned = in.get<std::int64_t>("owned");
  if (in.has("skipped")) rank.skipped = in.get<std::int64_t>("skipped");
  rank.hit_rate = in.maybe<double>("hit_rate");
  rank.reuse_rate = in.maybe<double>("reuse_rate");
  rank.miss_pages_per_step = distribution_from(in.object("miss_pages_per_step"));
  rank.p_any_miss = in.maybe<double>("p_any_miss");
  for (const auto& [name, member] : rank_distributions) rank.*member = distribution_from(in.object(name));
  rank.status = in.get<std::map<std::string, std::int64_t>>("status");
  return rank;
}

Json write(const LayerResult& layer) {
  Json ranks = Json::array();
  for (const RankResult& rank : layer.ranks) ranks.push_back(write(rank));
  return {{"k", layer.k}, {"window_ms", or_null(layer.window_ms)}, {"ranks", ranks}};
}

constexpr std::pair<const char*, Distribution PrefillLayerResult::*> prefill_distributions[] = {
    {"pages", &PrefillLayerResult::pages},
    {"waves", &PrefillLayerResult::waves},
    {"read_ms", &PrefillLayerResult::read_ms},
    {"total_ms", &PrefillLayerResult::total_ms}};

Json write(const PrefillResult& prefill) {
  Json layers = Json::array();
  for (const PrefillLayerResult& layer : prefill.layers) {
    Json json = {{"k", layer.k},
                 {"rank", layer.rank},
                 {"hit_rate", or_null(layer.hit_rate)},
                 {"reuse_rate", or_null(layer.reuse_rate)},
                 {"status", layer.status}};
    for (const auto& [name, member] : prefill_distributions) json[name] = to_json(layer.*member);
    layers.push_back(std::move(json));
  }
  return {{"tokens", prefill.tokens}, {"chunk_ms", to_json(prefill.chunk_ms)}, {"layers", layers}};
}

PrefillResult read_prefill(const FieldReader& in) {
  PrefillResult prefill{in.get<std::int64_t>("tokens"), distribution_from(in.object("chunk_ms")), {}};
  for (const FieldReader& from : in.objects("layers")) {
    PrefillLayerResult layer;
    layer.k = from.get<int>("k");
    layer.rank = from.get<int>("rank");
    layer.hit_rate = from.maybe<double>("hit_rate");
    layer.reuse_rate = from.maybe<double>("reuse_rate");
    layer.status = from.get<std::map<std::string, std::int64_t>>("status");
    for (const auto& [name, member] : prefill_distributions) layer.*member = distribution_from(from.object(name));
    prefill.layers.push_back(std::move(layer));
  }
  return prefill;
}

// An interval under three names; an empty one is three nulls.
void write_interval(Json& json, const std::optional<Interval>& interval, const char* estimate, const char* lo,
                    const char* hi) {
  json[estimate] = interval ? Json(interval->estimate) : Json(nullptr);
  json[lo] = interval ? Json(interval->lo) : Json(nullptr);
  json[hi] = interval ? Json(interval->hi) : Json(nullptr);
}

std::optional<Interval> read_interval(const FieldReader& in, const char* estimate, const char* lo, const char* hi) {
  if (in.null(estimate) || in.null(lo) || in.null(hi)) return {};
  return Interval{in.get<double>(estimate), in.get<double>(lo), in.get<double>(hi)};
}

Json write(const SlowdownResult& slowdown) {
  Json json = Json::object();
  write_interval(json, slowdown.mean_pct, "mean_pct", "lo_pct", "hi_pct");
  write_interval(json, slowdown.mean_ms, "mean_ms", "lo_ms", "hi_ms");
  write_interval(json, slowdown.p99_pct, "p99_pct", "p99_lo_pct", "p99_hi_pct");
  write_interval(json, slowdown.p99_ms, "p99_ms", "p99_lo_ms", "p99_hi_ms");
  json["mann_whitney_p"] = or_null(slowdown.mann_whitney_p);
  if (!slowdown.p99_pct) json["reason"] = "p99: too few steps";
  return json;
}

SlowdownResult read_slowdown(const FieldReader& in) {
  SlowdownResult slowdown;
  slowdown.mean_pct = {in.get<double>("mean_pct"), in.get<double>("lo_pct"), in.get<double>("hi_pct")};
  slowdown.mean_ms = {in.get<double>("mean_ms"), in.get<double>("lo_ms"), in.get<double>("hi_ms")};
  slowdown.p99_pct = read_interval(in, "p99_pct", "p99_lo_pct", "p99_hi_pct");
  slowdown.p99_ms = read_interval(in, "p99_ms", "p99_lo_ms", "p99_hi_ms");
  slowdown.mann_whitney_p = in.maybe<double>("mann_whitney_p");
  return slowdown;
}

constexpr std::pair<const char*, std::optional<std::int64_t> HostMemoryResult::*> memory_fields[] = {
    {"computed_full_geometry_bytes", &HostMemoryResult::computed_full_geometry_bytes},
    {"computed_bytes", &HostMemoryResult::computed_bytes},
    {"measured_bytes", &HostMemoryResult::measured_bytes},
    {"rss_bytes", &HostMemoryResult::rss_bytes},
    {"registered_bytes", &HostMemoryResult::registered_bytes}};

constexpr std::pair<const char*, std::optional<double> PaperValue::*> paper_fields[] = {{"mean_pct", &PaperValue::mean_pct},
                                                                                        {"mean_ms", &PaperValue::mean_ms},
                                                                                        {"p99_ms", &PaperValue::p99_ms},
                                                                                        {"host_gib", &PaperValue::host_gib}};

}  // namespace

SlowdownResult slowdown(const Comparison& comparison, const MannWhitney& test) {
  return {comparison.mean_pct, comparison.mean, comparison.p99_pct, comparison.p99, test.p};
}

Json to_json(const ConfigurationResult& c) {
  Json layers = Json::array();
  for (const LayerResult& layer : c.layers) layers.push_back(write(layer));
  Json json = {{"name", c.name},
               {"workload", c.workload},
               {"baseline", or_null(c.baseline)},
               {"placement", c.placement},
               {"steps", c.steps},
               {"step_ms", to_json(c.step_ms)},
               {"samples", nullptr},
               {"block_mean_ms", c.block_mean_ms},
               {"block_steps", c.block_steps},
               {"slowdown", c.slowdown ? write(*c.slowdown) : Json(nullptr)},
               {"aa_check", nullptr},
               {"run_order_slope", nullptr},
               {"host_memory", Json::object()},
               {"layers", layers},
               {"mismatches", c.mismatches},
               {"checked_rows", c.checked_rows},
               {"paper", nullptr}};
  if (c.prefill) json["prefill"] = write(*c.prefill);
  if (c.samples) json["samples"] = {{"file", c.samples->file}, {"sha256", c.samples->sha256}};
  if (c.aa_check) {
    write_interval(json["aa_check"], c.aa_check->mean_pct, "mean_pct", "lo_pct", "hi_pct");
    json["aa_check"]["covers_zero"] = c.aa_check->covers_zero;
  }
  if (c.run_order_slope_ms_per_block)
    write_interval(json["run_order_slope"], c.run_order_slope_ms_per_block, "ms_per_block", "lo_ms_per_block",
                   "hi_ms_per_block");
  for (const auto& [name, member] : memory_fields) json["host_memory"][name] = or_null(c.host_memory.*member);
  if (c.paper) {
    json["paper"] = {{"label", c.paper->label}};
    for (const auto& [name, member] : paper_fields) json["paper"][name] = or_null((*c.paper).*member);
  }
  return json;
}

ConfigurationResult configuration_from_json(const Json& json, const std::string& where) {
  const FieldReader in(json, where);
  ConfigurationResult c;
  c.name = in.get<std::string>("name");
  c.workload = in.get<std::string>("workload");
  c.baseline = in.maybe<std::string>("baseline");
  c.placement = in.at("placement");
  c.steps = in.get<std::int64_t>("steps");
  c.step_ms = distribution_from(in.object("step_ms"));
  if (!in.null("samples")) {
    const FieldReader samples = in.object("samples");
    c.samples = SampleFile{samples.get<std::string>("file"), samples.get<std::string>("sha256")};
  }
  c.block_mean_ms = in.get<std::vector<double>>("block_mean_ms");
  c.block_steps = in.get<std::vector<std::int64_t>>("block_steps");
  if (!in.null("slowdown")) c.slowdown = read_slowdown(in.object("slowdown"));
  if (!in.null("aa_check")) {
    const FieldReader check = in.object("aa_check");
    c.aa_check = AaCheck{{check.get<double>("mean_pct"), check.get<double>("lo_pct"), check.get<double>("hi_pct")},
                         check.get<bool>("covers_zero")};
  }
  if (!in.null("run_order_slope"))
    c.run_order_slope_ms_per_block =
        read_interval(in.object("run_order_slope"), "ms_per_block", "lo_ms_per_block", "hi_ms_per_block");
  const FieldReader memory = in.object("host_memory");
  for (const auto& [name, member] : memory_fields) c.host_memory.*member = memory.maybe<std::int64_t>(name);
  for (const FieldReader& layer : in.objects("layers")) {
    LayerResult result{layer.get<int>("k"), layer.maybe<double>("window_ms"), {}};
    for (const FieldReader& rank : layer.objects("ranks")) result.ranks.push_back(read_rank(rank));
    c.layers.push_back(std::move(result));
  }
  if (json.contains("prefill")) c.prefill = read_prefill(in.object("prefill"));
  c.mismatches = in.get<std::int64_t>("mismatches");
  c.checked_rows = in.get<std::int64_t>("checked_rows");
  if (!in.null("paper")) {
    const FieldReader paper = in.object("paper");
    c.paper = PaperValue{paper.get<std::string>("label"), {}, {}, {}, {}};
    for (const auto& [name, member] : paper_fields) (*c.paper).*member = paper.maybe<double>(name);
  }
  return c;
}

std::vector<ConfigurationResult> configurations(const Envelope& envelope) {
  if (envelope.kind != "results")
    throw InputError(fmt::format("{}: is of kind '{}'; a 'results' file is needed here", envelope.file, envelope.kind));
  std::vector<ConfigurationResult> all;
  for (std::size_t i = 0; i < envelope.results.size(); ++i)
    all.push_back(configuration_from_json(envelope.results[i], fmt::format("{}: /results/{}", envelope.file, i)));
  return all;
}

void set_configurations(Envelope& envelope, const std::vector<ConfigurationResult>& configurations) {
  envelope.kind = "results";
  envelope.results = Json::array();
  for (const ConfigurationResult& configuration : configurations) envelope.results.push_back(to_json(configuration));
}

}  // namespace slacktier

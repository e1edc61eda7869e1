#include "reports/misses_file.hpp"

#include <fmt/format.h>

#include <cstdint>

#include "reports/error.hpp"
#include "reports/field_reader.hpp"

namespace slacktier {
namespace {

template <class T>
std::optional<T> maybe(const FieldReader& in, const char* key) {
  return in.has(key) ? in.maybe<T>(key) : std::optional<T>();
}

Json write(const MissPoint& point) {
  Json json = {{"rows", point.rows}, {"decode_hit", or_null(point.decode_hit)}, {"hit", or_null(point.hit)}};
  if (!point.hit_by_order.empty()) {
    Json& orders = json["hit_by_order"] = Json::object();
    for (const auto& [order, share] : point.hit_by_order) orders[std::to_string(order)] = or_null(share);
  }
  json["misses_mean"] = or_null(point.misses_mean);
  json["pages_mean"] = or_null(point.pages_mean);
  json["pages_p99"] = or_null(point.pages_p99);
  json["p_any_miss"] = or_null(point.p_any_miss);
  if (!point.reason.empty()) json["reason"] = point.reason;
  return json;
}

MissPoint read_point(const FieldReader& in) {
  MissPoint point;
  point.rows = in.get<std::uint64_t>("rows");
  point.decode_hit = in.maybe<double>("decode_hit");
  point.hit = maybe<double>(in, "hit");
  if (in.has("hit_by_order"))
    for (const auto& [order, share] : in.at("hit_by_order").items())
      point.hit_by_order[std::stoi(order)] = share.is_null() ? std::optional<double>() : share.get<double>();
  point.misses_mean = maybe<double>(in, "misses_mean");
  point.pages_mean = in.maybe<double>("pages_mean");
  point.pages_p99 = in.maybe<double>("pages_p99");
  point.p_any_miss = in.maybe<double>("p_any_miss");
  point.reason = in.reason();
  return point;
}

Json write(const RankMisses& rank) {
  Json json = {{"rank", rank.rank}};
  if (rank.shard_rows) json["rows"] = *rank.shard_rows;
  if (rank.lookups) json["lookups"] = *rank.lookups;
  if (rank.distinct_rows) json["distinct_rows"] = *rank.distinct_rows;
  json["curve"] = Json::array();
  for (const MissPoint& point : rank.curve) json["curve"].push_back(write(point));
  return json;
}

RankMisses read_rank(const FieldReader& in, const std::string& where) {
  RankMisses rank;
  rank.rank = in.get<std::uint32_t>("rank");
  rank.shard_rows = maybe<std::uint64_t>(in, "rows");
  rank.lookups = maybe<std::uint64_t>(in, "lookups");
  rank.distinct_rows = maybe<std::uint64_t>(in, "distinct_rows");
  for (const FieldReader& point : in.objects("curve")) {
    rank.curve.push_back(read_point(point));
    const std::size_t n = rank.curve.size();
    if (n > 1 && rank.curve[n - 1].rows <= rank.curve[n - 2].rows)
      throw InputError(
          fmt::format("{}: rank {}: curve/{}/rows: {} does not rise", where, rank.rank, n - 1, rank.curve[n - 1].rows));
  }
  return rank;
}

Json write(const MissesResult& result) {
  Json json = Json::object();
  if (!result.workload.empty()) json["workload"] = result.workload;
  json["policy"] = result.policy;
  json["sessions"] = result.sessions;
  json["q"] = result.q;
  json["phase"] = result.phase;
  if (result.steps) json["steps"] = *result.steps;
  if (result.warm_steps) json["warm_steps"] = *result.warm_steps;
  json["chunk_tokens"] = or_null(result.chunk_tokens);
  json["cache"] = result.cache;
  json["idle_steps"] = {result.idle_lo, result.idle_hi};
  if (result.sampled)
    json["sampled"] = {
        {"method", result.sampled->method}, {"rate", result.sampled->rate}, {"error", or_null(result.sampled->error)}};
  json["layers"] = Json::array();
  for (const LayerMisses& layer : result.layers) {
    Json ranks = Json::array();
    for (const RankMisses& rank : layer.ranks) ranks.push_back(write(rank));
    json["layers"].push_back({{"k", layer.k}, {"ranks", ranks}});
  }
  return json;
}

MissesResult read_result(const FieldReader& in, const std::string& where) {
  MissesResult result;
  result.workload = in.has("workload") ? in.get<std::string>("workload") : "";
  result.policy = in.get<std::string>("policy");
  result.sessions = in.get<std::uint32_t>("sessions");
  result.q = in.get<std::uint32_t>("q");
  result.phase = in.get<std::string>("phase");
  result.steps = maybe<std::uint64_t>(in, "steps");
  result.warm_steps = maybe<std::uint64_t>(in, "warm_steps");
  result.chunk_tokens = maybe<std::uint64_t>(in, "chunk_tokens");
  if (in.has("cache")) result.cache = in.get<std::string>("cache");
  if (in.has("idle_steps")) {
    const auto idle = in.get<std::vector<std::uint64_t>>("idle_steps");
    result.idle_lo = idle.at(0);
    result.idle_hi = idle.at(1);
  }
  if (in.has("sampled")) {
    const FieldReader sampled = in.object("sampled");
    result.sampled =
        MissesSampled{sampled.get<std::string>("method"), sampled.get<double>("rate"), sampled.maybe<double>("error")};
  }
  for (const FieldReader& one : in.objects("layers")) {
    LayerMisses layer;
    layer.k = one.get<int>("k");
    for (const FieldReader& rank : one.objects("ranks"))
      layer.ranks.push_back(read_rank(rank, fmt::format("{}: layer {}", where, layer.k)));
    result.layers.push_back(std::move(layer));
  }
  return result;
}

}  // namespace

std::vector<MissesResult> misses_results(const Envelope& envelope) {
  const std::string where = envelope.file.empty() ? "misses file" : envelope.file;
  if (envelope.kind != "misses")
    throw InputError(fmt::format("{}: is a '{}' file; a 'misses' file is needed here", where, envelope.kind));
  std::vector<MissesResult> results;
  for (std::size_t i = 0; i < envelope.results.size(); ++i) {
    const std::string at = fmt::format("{}: /results/{}", where, i);
    results.push_back(read_result(FieldReader(envelope.results[i], at), at));
  }
  return results;
}

void set_misses_results(Envelope& envelope, const std::vector<MissesResult>& results) {
  envelope.kind = "misses";
  envelope.results = Json::array();
  for (const MissesResult& result : results) envelope.results.push_back(write(result));
}

std::optional<double> at_rows(const std::vector<MissPoint>& curve, double rows, std::optional<double> MissPoint::*quantity) {
  if (curve.empty() || rows < static_cast<double>(curve.front().rows)) return {};
  for (std::size_t i = 0; i < curve.size(); ++i) {
    const auto here = static_cast<double>(curve[i].rows);
    if (rows == here) return curve[i].*quantity;
    if (rows > here) continue;
    const auto &low = curve[i - 1].*quantity, &high = curve[i].*quantity;
    if (!low || !high) return {};
    const auto before = static_cast<double>(curve[i - 1].rows);
    return *low + (*high - *low) * (rows - before) / (here - before);
  }
  const std::size_t n = curve.size();
  const bool flat = n > 1 && curve[n - 1].*quantity && curve[n - 1].*quantity == curve[n - 2].*quantity;
  return flat ? curve[n - 1].*quantity : std::optional<double>();
}

}  // namespace slacktier

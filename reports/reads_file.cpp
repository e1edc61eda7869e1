#include "reports/reads_file.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>

#include "reports/error.hpp"
#include "reports/field_reader.hpp"

namespace slacktier {
namespace {

int layer_number(const std::string& key, const std::string& where) {
  int layer = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), layer);
  if (error != std::errc() || end != key.data() + key.size())
    throw InputError(fmt::format("{}: '{}' is no layer number", where, key));
  return layer;
}

// {"1": …, "14": …} and back.
template <class T, class Write>
Json by_layer(const std::map<int, T>& values, Write write) {
  Json json = Json::object();
  for (const auto& [k, value] : values) json[std::to_string(k)] = write(value);
  return json;
}
Json plain(double value) { return value; }
Json count(std::int64_t value) { return value; }

std::map<int, Distribution> distributions(const FieldReader& in, const char* key) {
  std::map<int, Distribution> values;
  if (!in.has(key)) return values;
  const FieldReader object = in.object(key);
  for (const auto& [layer, value] : in.at(key).items())
    values[layer_number(layer, key)] = distribution_from(object.object(layer.c_str()));
  return values;
}
template <class T>
std::map<int, T> numbers(const FieldReader& in, const char* key) {
  std::map<int, T> values;
  if (!in.has(key)) return values;
  const FieldReader object = in.object(key);
  for (const auto& [layer, value] : in.at(key).items()) values[layer_number(layer, key)] = object.get<T>(layer.c_str());
  return values;
}

Json write(const ReadPoint& point) {
  const auto statistics = [](const Distribution& d) { return to_json(d); };
  Json json = {{"pages_per_rank", by_layer(point.pages_per_rank, count)},
               {"submit_us", by_layer(point.submit_us, statistics)},
               {"t_us", by_layer(point.t_us, statistics)}};
  if (!point.response_us.empty()) json["response_us"] = by_layer(point.response_us, statistics);
  json["cpu_us_per_page"] = or_null(point.cpu_us_per_page);
  if (point.batch_us) json["batch_us"] = to_json(*point.batch_us);
  if (point.cycle_us) json["cycle_us"] = *point.cycle_us;
  if (point.cycle_cpu_us_per_page) json["cycle_cpu_us_per_page"] = *point.cycle_cpu_us_per_page;
  if (point.pages_per_s) json["pages_per_s"] = *point.pages_per_s;
  if (point.samples) json["samples"] = {{"file", point.samples->file}, {"sha256", point.samples->sha256}};
  if (!point.intervals.empty()) {
    json["intervals"] = Json::array();
    for (const ReadInterval& interval : point.intervals)
      json["intervals"].push_back({{"start_s", interval.start_s}, {"t_us", by_layer(interval.t_us, statistics)}});
  }
  if (!point.reason.empty()) json["reason"] = point.reason;
  return json;
}

ReadPoint read_point(const FieldReader& in) {
  ReadPoint point;
  point.pages_per_rank = numbers<std::int64_t>(in, "pages_per_rank");
  point.submit_us = distributions(in, "submit_us");
  point.t_us = distributions(in, "t_us");
  point.response_us = distributions(in, "response_us");
  if (in.has("cpu_us_per_page")) point.cpu_us_per_page = in.maybe<double>("cpu_us_per_page");
  if (in.has("batch_us")) point.batch_us = distribution_from(in.object("batch_us"));
  if (in.has("cycle_us")) point.cycle_us = in.maybe<double>("cycle_us");
  if (in.has("cycle_cpu_us_per_page")) point.cycle_cpu_us_per_page = in.maybe<double>("cycle_cpu_us_per_page");
  if (in.has("pages_per_s")) point.pages_per_s = in.maybe<double>("pages_per_s");
  if (in.has("samples")) {
    const FieldReader samples = in.object("samples");
    point.samples = SampleFile{samples.get<std::string>("file"), samples.get<std::string>("sha256")};
  }
  if (in.has("intervals"))
    for (const FieldReader& interval : in.objects("intervals"))
      point.intervals.push_back({interval.get<double>("start_s"), distributions(interval, "t_us")});
  point.reason = in.reason();
  return point;
}

Json write(const ReadFit& fit) {
  Json range = Json::object();
  for (const auto& [k, pages] : fit.range)
    range[std::to_string(k)] = {{"min_pages", pages.first}, {"max_pages", pages.second}};
  return {{"k", fit.k},
          {"a_us", fit.a_us},
          {"b_us", by_layer(fit.b_us, plain)},
          {"r2", or_null(fit.r2)},
          {"rmse_us", or_null(fit.rmse_us)},
          {"a_lo_us", fit.a_lo_us},
          {"a_hi_us", fit.a_hi_us},
          {"b_lo_us", by_layer(fit.b_lo_us, plain)},
          {"b_hi_us", by_layer(fit.b_hi_us, plain)},
          {"range", range}};
}

ReadFit read_fit(const FieldReader& in) {
  ReadFit fit;
  fit.k = in.get<int>("k");
  fit.a_us = in.get<double>("a_us");
  fit.a_lo_us = in.has("a_lo_us") ? in.maybe<double>("a_lo_us").value_or(fit.a_us) : fit.a_us;
  fit.a_hi_us = in.has("a_hi_us") ? in.maybe<double>("a_hi_us").value_or(fit.a_us) : fit.a_us;
  fit.b_us = numbers<double>(in, "b_us");
  fit.b_lo_us = in.has("b_lo_us") ? numbers<double>(in, "b_lo_us") : fit.b_us;
  fit.b_hi_us = in.has("b_hi_us") ? numbers<double>(in, "b_hi_us") : fit.b_us;
  fit.r2 = in.maybe<double>("r2");
  if (in.has("rmse_us")) fit.rmse_us = in.maybe<double>("rmse_us");
  const FieldReader range = in.object("range");
  for (const auto& [layer, value] : in.at("range").items()) {
    const FieldReader pages = range.object(layer.c_str());
    fit.range[layer_number(layer, "range")] = {pages.get<std::int64_t>("min_pages"), pages.get<std::int64_t>("max_pages")};
  }
  return fit;
}

Json write(const ReadVerdict& verdict) {
  Json json = {{"k", verdict.k},
               {"verdict", to_string(verdict.fits)},
               {"window_ms", verdict.window_ms},
               {"headroom_mean_ms", or_null(verdict.headroom_mean_ms)},
               {"headroom_p99_ms", or_null(verdict.headroom_p99_ms)},
               {"max_batch", or_null(verdict.max_batch)},
               {"max_tenants", or_null(verdict.max_tenants)}};
  if (!verdict.reason.empty()) json["reason"] = verdict.reason;
  return json;
}

ReadVerdict read_verdict(const FieldReader& in) {
  ReadVerdict verdict;
  verdict.k = in.get<int>("k");
  const auto text = in.get<std::string>("verdict");
  for (const Fits fits : {Fits::yes, Fits::no, Fits::unclear})
    if (text == to_string(fits)) verdict.fits = fits;
  verdict.window_ms = in.get<double>("window_ms");
  verdict.headroom_mean_ms = in.maybe<double>("headroom_mean_ms");
  verdict.headroom_p99_ms = in.maybe<double>("headroom_p99_ms");
  if (in.has("max_batch")) verdict.max_batch = in.maybe<std::int64_t>("max_batch");
  if (in.has("max_tenants")) verdict.max_tenants = in.maybe<std::int64_t>("max_tenants");
  verdict.reason = in.reason();
  return verdict;
}

Json write(const ReadResult& result) {
  Json json = {{"source", result.source},   {"ranks_on_disk", result.ranks_on_disk},
               {"disks", result.disks},     {"threads", result.threads},
               {"tenants", result.tenants}, {"order", result.order},
               {"pacing", result.pacing},   {"verify", result.verify}};
  json["zero_pages_share"] = or_null(result.zero_pages_share);
  if (result.engine)
    json["engine"] = {{"effective", result.engine->effective},
                      {"direct", result.engine->direct},
                      {"fixed_buffers", result.engine->fixed_buffers},
                      {"fixed_files", result.engine->fixed_files},
                      {"sqpoll", result.engine->sqpoll},
                      {"iopoll", result.engine->iopoll},
                      {"poller_cpu_pct", or_null(result.engine->poller_cpu_pct)}};
  json["points"] = Json::array();
  for (const ReadPoint& point : result.points) json["points"].push_back(write(point));
  if (!result.fit.empty()) {
    json["fit"] = Json::array();
    for (const ReadFit& fit : result.fit) json["fit"].push_back(write(fit));
  }
  if (!result.verdicts.empty()) {
    json["verdicts"] = Json::array();
    for (const ReadVerdict& verdict : result.verdicts) json["verdicts"].push_back(write(verdict));
  }
  if (result.steady) json["steady"] = *result.steady;
  if (!result.unmet.empty()) json["unmet"] = result.unmet;
  return json;
}

ReadResult read_result(const FieldReader& in) {
  ReadResult result;
  result.source = in.get<std::string>("source");
  result.ranks_on_disk = in.get<std::int64_t>("ranks_on_disk");
  result.disks = in.get<std::int64_t>("disks");
  result.threads = in.get<std::int64_t>("threads");
  result.tenants = in.get<std::int64_t>("tenants");
  result.order = in.get<std::string>("order");
  if (in.has("pacing")) result.pacing = in.get<std::string>("pacing");
  result.verify = in.get<std::string>("verify");
  if (in.has("zero_pages_share")) result.zero_pages_share = in.maybe<double>("zero_pages_share");
  if (in.has("engine")) {
    const FieldReader engine = in.object("engine");
    const auto flag = [&](const char* key) { return engine.has(key) && engine.get<bool>(key); };
    result.engine = ReadEngine{engine.get<std::string>("effective"),
                               engine.get<bool>("direct"),
                               flag("fixed_buffers"),
                               flag("fixed_files"),
                               flag("sqpoll"),
                               flag("iopoll"),
                               engine.has("poller_cpu_pct") ? engine.maybe<double>("poller_cpu_pct") : std::nullopt};
  }
  for (const FieldReader& point : in.objects("points")) result.points.push_back(read_point(point));
  if (in.has("fit"))
    for (const FieldReader& fit : in.objects("fit")) result.fit.push_back(read_fit(fit));
  if (in.has("verdicts"))
    for (const FieldReader& verdict : in.objects("verdicts")) result.verdicts.push_back(read_verdict(verdict));
  if (in.has("steady")) result.steady = in.get<bool>("steady");
  if (in.has("unmet")) result.unmet = in.get<std::string>("unmet");
  return result;
}

}  // namespace

double ReadFit::at(const std::map<int, std::int64_t>& pages) const {
  double t = a_us;
  for (const auto& [layer, b] : b_us)
    if (const auto found = pages.find(layer); found != pages.end()) t += b * static_cast<double>(found->second);
  return t;
}

bool ReadFit::extrapolates(const std::map<int, std::int64_t>& pages) const {
  for (const auto& [layer, measured] : range)
    if (const auto found = pages.find(layer);
        found != pages.end() && (found->second < measured.first || found->second > measured.second))
      return true;
  return false;
}

const char* to_string(Fits fits) {
  switch (fits) {
    case Fits::yes:
      return "fits";
    case Fits::no:
      return "does-not-fit";
    case Fits::unclear:
      break;
  }
  return "unclear";
}

std::vector<ReadResult> read_results(const Envelope& envelope) {
  if (envelope.kind != "reads")
    throw InputError(fmt::format("{}: is of kind '{}'; a 'reads' file is needed here", envelope.file, envelope.kind));
  std::vector<ReadResult> all;
  for (std::size_t i = 0; i < envelope.results.size(); ++i)
    all.push_back(read_result(FieldReader(envelope.results[i], fmt::format("{}: /results/{}", envelope.file, i))));
  return all;
}

void set_read_results(Envelope& envelope, const std::vector<ReadResult>& results) {
  envelope.kind = "reads";
  envelope.results = Json::array();
  for (const ReadResult& result : results) envelope.results.push_back(write(result));
}

}  // namespace slacktier

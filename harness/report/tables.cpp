#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "harness/report/parts.hpp"
#include "reports/exposure_fit.hpp"
#include "reports/misses_file.hpp"
#include "reports/reads_file.hpp"
#include "reports/results_table.hpp"
#include "reports/windows_table.hpp"

namespace slacktier::report {
namespace {

Cell cell_of(const Json& value) {
  if (value.is_null()) return {};
  if (value.is_string()) return Cell(value.get<std::string>());
  if (value.is_number_integer()) return Cell::count(value.get<std::int64_t>());
  if (value.is_number()) return Cell::number(value.get<double>(), 3);
  return Cell(value.dump());
}

// Objects below are named by their path: "host.cpu".
void flatten(const Json& value, const std::string& name, std::vector<std::pair<std::string, Cell>>& rows) {
  if (value.is_object() && !value.empty()) {
    for (const auto& [key, field] : value.items()) flatten(field, name.empty() ? key : name + "." + key, rows);
  } else if (value.is_array() && !value.empty() && value.front().is_object()) {
    for (std::size_t i = 0; i < value.size(); ++i) flatten(value[i], fmt::format("{}[{}]", name, i), rows);
  } else {
    rows.emplace_back(name, cell_of(value));
  }
}

Table fields_table(const std::string& title, const Json& value) {
  Table table;
  table.title = title;
  table.columns = {{"field", "", Align::left, ""}, {"value", "", Align::left, ""}};
  std::vector<std::pair<std::string, Cell>> rows;
  flatten(value, "", rows);
  for (auto& [name, cell] : rows) table.rows.push_back({name, cell});
  return table;
}

std::vector<std::string> head_of(const Envelope& envelope) {
  std::vector<std::string> head;
  if (envelope.settings.contains("labels"))
    for (const Json& label : envelope.settings["labels"])
      if (label.is_string()) head.push_back(label.get<std::string>());
  for (const Warning& warning : envelope.warnings) head.push_back("warning: " + warning.message);
  return head;
}

std::string load_of(const ReadResult& result) {
  return fmt::format("{}, {} disk(s), {} thread(s), {} rank(s) on a disk, {} tenant(s)", result.source, result.disks,
                     result.threads, result.ranks_on_disk, result.tenants);
}

std::vector<Table> reads_tables(const Envelope& envelope) {
  Table times, fits;
  times.title = "Read time until the last page";
  times.head = head_of(envelope);
  times.columns = {{"load", "", Align::left, "", 40}, {"layer", "", Align::right, ""}, {"pages", "rank", Align::right, ""},
                   {"mean", "ms", Align::right, ""},  {"p50", "ms", Align::right, ""}, {"p99", "ms", Align::right, ""},
                   {"batches", "", Align::right, ""}};
  fits.title = "T = a + sum of b x pages";
  fits.columns = {{"load", "", Align::left, "", 40},     {"layer", "", Align::right, ""},
                  {"a", "µs", Align::right, "a_us"},     {"b", "µs/page", Align::left, "b_us"},
                  {"R²", "", Align::right, "r2"},        {"RMSE", "µs", Align::right, "rmse_us"},
                  {"measured", "pages", Align::left, ""}};
  const auto ms = [](std::optional<double> us) { return us ? Cell::number(*us / 1e3, 3) : Cell(); };
  for (const ReadResult& result : read_results(envelope)) {
    for (const ReadPoint& point : result.points)
      for (const auto& [k, t] : point.t_us) {
        const auto pages = point.pages_per_rank.find(k);
        times.rows.push_back({load_of(result), Cell::count(k),
                              pages == point.pages_per_rank.end() ? Cell() : Cell::count(pages->second), ms(t.mean),
                              ms(t.p50), ms(t.p99), Cell::count(static_cast<std::int64_t>(t.n))});
      }
    for (const ReadFit& fit : result.fit) {
      std::string slopes, range;
      for (const auto& [k, b] : fit.b_us) slopes += fmt::format("{}{:.3f} for layer {}", slopes.empty() ? "" : ", ", b, k);
      for (const auto& [k, pages] : fit.range)
        range += fmt::format("{}{} to {} of layer {}", range.empty() ? "" : ", ", pages.first, pages.second, k);
      fits.rows.push_back({load_of(result), Cell::count(fit.k), Cell::number(fit.a_us, 1), slopes, Cell::number(fit.r2, 4),
                           Cell::number(fit.rmse_us, 1), range});
    }
  }
  times.footnotes = {"–: too few batches for a p99"};
  std::vector<Table> tables{times};
  if (!fits.rows.empty()) tables.insert(tables.begin(), fits);
  return tables;
}

std::vector<Table> exposure_tables(const Envelope& envelope) {
  const ExposureFit fit = exposure_of(envelope);
  Table table;
  table.title = "The exposure model against measured slowdowns";
  table.head = head_of(envelope);
  table.columns = {{"run", "", Align::left, "", 40},
                   {"measured", "ms", Align::right, ""},
                   {"from", "ms", Align::right, "lo_ms"},
                   {"to", "ms", Align::right, "hi_ms"},
                   {"Eq. 1", "ms", Align::right, "predicted_ms"}};
  for (const ExposurePoint& p : fit.points)
    table.rows.push_back({p.name, Cell::number(p.measured_ms, 3, true), Cell::number(p.lo_ms, 3, true),
                          Cell::number(p.hi_ms, 3, true), Cell::number(p.predicted_ms, 3, true)});
  table.footnotes.push_back(
      fmt::format("kappa {:.3f} ms; RMSE {:.3f} ms over {} runs", fit.kappa_ms.estimate, fit.rmse_ms, fit.n));
  return {table};
}

std::vector<Table> placement_tables(const Envelope& envelope) {
  Table table;
  const Json& results = envelope.results;
  table.title = results.value("name", std::string("Placement"));
  table.head = head_of(envelope);
  if (results.contains("decision"))
    table.head.insert(table.head.begin(), "decision: " + results["decision"].get<std::string>());
  table.columns = {{"layer", "", Align::right, ""},
                   {"source", "", Align::left, ""},
                   {"disks", "", Align::right, ""},
                   {"threads", "", Align::right, ""},
                   {"cache", "rows/rank", Align::right, ""}};
  const auto field = [](const Json& layer, const char* key) { return layer.contains(key) ? cell_of(layer[key]) : Cell(); };
  for (const auto& [k, layer] : results.at("layers").items())
    table.rows.push_back({Cell(k), field(layer, "source"), field(layer, "disks"), field(layer, "threads"),
                          field(layer, "cache_rows_per_rank")});
  if (results.contains("predicted")) {
    const Json& p = results["predicted"];
    const auto said = [&](const char* key) {
      return p.contains(key) && p[key].is_number() ? fmt::format("{:.3f}", p[key].get<double>()) : "unknown";
    };
    table.footnotes.push_back(fmt::format("predicted slowdown: mean {} ms [{}, {}], p99 {} ms", said("mean_ms"),
                                          said("lo_ms"), said("hi_ms"), said("p99_ms")));
  }
  return {table};
}

}  // namespace

FileTables tables_of(const Envelope& envelope) {
  if (envelope.kind == "results") {
    FileTables tables{{overhead_table(envelope)}, {layer_table(envelope)}};
    if (Table prefill = prefill_table(envelope); !prefill.rows.empty()) tables.folded.push_back(prefill);
    return tables;
  }
  if (envelope.kind == "windows") return {windows_tables(envelope), {}};
  if (envelope.kind == "reads") return {reads_tables(envelope), {}};
  if (envelope.kind == "exposure") return {exposure_tables(envelope), {}};
  if (envelope.kind == "placement") return {placement_tables(envelope), {}};
  if (envelope.kind == "misses") {
    FileTables tables;
    for (Table& table : misses_tables(envelope))
      (tables.shown.empty() ? tables.shown : tables.folded).push_back(std::move(table));
    return tables;
  }
  Table table = fields_table(fmt::format("Results ({})", envelope.kind), envelope.results);
  table.head = head_of(envelope);
  return {{table}, {}};
}

Table provenance_table(const Envelope& envelope) {
  Json all = envelope.provenance;
  if (!envelope.settings.empty()) all["settings"] = envelope.settings;
  Table table = fields_table("Provenance and settings", all);
  for (const std::string& note : envelope.notes) table.footnotes.push_back(note);
  return table;
}

}  // namespace slacktier::report

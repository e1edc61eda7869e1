#include "reports/results_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "reports/results_file.hpp"

namespace slacktier {
namespace {

std::optional<double> times(std::optional<double> value, double factor) {
  return value ? std::optional<double>(*value * factor) : std::nullopt;
}

std::optional<double> gib(std::optional<std::int64_t> bytes) {
  return bytes ? std::optional<double>(static_cast<double>(*bytes) / (1 << 30)) : std::nullopt;
}

Cell milliseconds(std::optional<double> us) { return Cell::number(times(us, 1e-3), 2); }
Cell percent(std::optional<double> share, int decimals = 1) { return Cell::number(times(share, 100), decimals); }

Cell memory(std::optional<std::int64_t> bytes) {
  const auto size = gib(bytes);
  return Cell::number(size, size && *size >= 10 ? 0 : 2);
}

// "[+6.1, +6.8]"; what rounds to zero has no sign.
std::string bracket(const Interval& interval) {
  const auto bound = [](double value) {
    return std::abs(value) < 0.05 ? fmt::format("{:.1f}", 0.0) : fmt::format("{:+.1f}", value);
  };
  return fmt::format("[{}, {}]", bound(interval.lo), bound(interval.hi));
}

Cell p_value(std::optional<double> p) {
  Cell cell = Cell::number(p, 3);
  if (p && *p < 0.001) cell.shown_as = std::string("<0.001");
  return cell;
}

// What the numbers are about: settings by name, the labels, and every warning.
std::vector<std::string> head_of(const Envelope& results) {
  constexpr std::pair<const char*, const char*> shown[] = {
      {"model", "model"},      {"table", "table"},   {"ranks", "R"},    {"measured_ranks", "measured ranks"},
      {"shard_map", "shards"}, {"device", "device"}, {"sessions", "B"}, {"tokens_per_session", "q"},
      {"blocks", "blocks"}};
  std::vector<std::string> facts, head;
  for (const auto& [key, name] : shown) {
    if (!results.settings.contains(key) || results.settings[key].is_null()) continue;
    const Json& value = results.settings[key];
    if (value.is_array()) {
      std::vector<std::string> items;
      for (const Json& item : value) items.push_back(item.is_string() ? item.get<std::string>() : item.dump());
      facts.push_back(fmt::format("{} {}", name, fmt::join(items, ",")));
    } else {
      facts.push_back(fmt::format("{} {}", name, value.is_string() ? value.get<std::string>() : value.dump()));
    }
  }
  if (!facts.empty()) head.push_back(fmt::format("{}", fmt::join(facts, " · ")));
  if (results.settings.contains("labels"))
    for (const Json& label : results.settings["labels"]) head.push_back(label.get<std::string>());
  for (const Warning& warning : results.warnings) head.push_back(fmt::format("warning: {}", warning.message));
  return head;
}

std::vector<std::string> footnotes_of(const std::vector<ConfigurationResult>& all) {
  std::vector<std::string> notes;
  std::vector<std::string> drifting, reasons;
  bool paper = false;
  if (std::any_of(all.begin(), all.end(), [](const ConfigurationResult& c) { return c.slowdown.has_value(); }))
    notes.push_back(
        "slowdown: mean step against the baseline's, 95% interval by hierarchical bootstrap over blocks; p: Mann-Whitney of "
        "block means");
  for (const ConfigurationResult& c : all) {
    paper = paper || c.paper;
    if (!c.step_ms.p99 && !c.step_ms.reason.empty() &&
        std::find(reasons.begin(), reasons.end(), c.step_ms.reason) == reasons.end())
      reasons.push_back(c.step_ms.reason);
    if (c.run_order_slope_ms_per_block && !c.run_order_slope_ms_per_block->covers(0))
      drifting.push_back(
          fmt::format("{} ({}) {:+.3f} ms a block", c.name, c.workload, c.run_order_slope_ms_per_block->estimate));
    if (c.aa_check)
      notes.push_back(fmt::format("A/A check ({}): the baseline against itself {:+.2f}% {}, {}", c.workload,
                                  c.aa_check->mean_pct.estimate, bracket(c.aa_check->mean_pct),
                                  c.aa_check->covers_zero ? "covers 0" : "DOES NOT COVER 0: intervals are too narrow here"));
  }
  if (!drifting.empty()) notes.push_back(fmt::format("run order: steps drift: {}", fmt::join(drifting, "; ")));
  for (const std::string& reason : reasons) notes.push_back(fmt::format("–: {}", reason));
  if (paper) notes.push_back("paper: the published slowdown of the same configuration, on its own machine");
  return notes;
}

Cell paper_pct(const ConfigurationResult& c) { return c.paper ? Cell::number(c.paper->mean_pct, 1, true) : Cell(); }

}  // namespace

Table overhead_table(const Envelope& results) {
  const std::vector<ConfigurationResult> all = configurations(results);
  Table table;
  table.title = "Decode step by placement";
  table.head = head_of(results);
  table.columns = {{"configuration", "", Align::left, "", 26},
                   {"load", "", Align::left, ""},
                   {"mean", "ms", Align::right, ""},
                   {"p50", "ms", Align::right, ""},
                   {"p99", "ms", Align::right, ""},
                   {"slowdown", "%", Align::right, ""},
                   {"95% interval", "%", Align::right, "interval_pct"},
                   {"p", "", Align::right, "mann_whitney_p"},
                   {"host", "GiB", Align::right, "host_full_geometry_gib"},
                   {"meas.", "GiB", Align::right, "host_measured_gib"},
                   {"wrong", "rows", Align::right, "mismatches"},
                   {"paper", "%", Align::right, ""}};
  for (const ConfigurationResult& c : all) {
    table.rows.push_back(
        {c.name, c.workload, Cell::number(c.step_ms.mean, 2), Cell::number(c.step_ms.p50, 2), Cell::number(c.step_ms.p99, 2),
         c.slowdown ? Cell::number(c.slowdown->mean_pct.estimate, 1, true) : Cell(c.baseline ? "" : "baseline"),
         c.slowdown ? Cell(bracket(c.slowdown->mean_pct)) : Cell(),
         p_value(c.slowdown ? c.slowdown->mann_whitney_p : std::nullopt), memory(c.host_memory.computed_full_geometry_bytes),
         memory(c.host_memory.measured_bytes), Cell::count(c.mismatches), paper_pct(c)});
  }
  table.footnotes = footnotes_of(all);
  table.footnotes.push_back(
      "host: what the placement needs per node at the table's full size; meas.: what this process holds (resident, "
      "registered)");
  return table;
}

Table layer_table(const Envelope& results) {
  Table table;
  table.title = "Lookups and reads by layer and rank";
  table.head = head_of(results);
  table.columns = {{"configuration", "", Align::left, "", 22},
                   {"load", "", Align::left, ""},
                   {"k", "", Align::right, ""},
                   {"rank", "", Align::right, ""},
                   {"hit", "%", Align::right, ""},
                   {"reuse", "%", Align::right, ""},
                   {"pages", "step", Align::right, "pages_per_step_mean"},
                   {"p99", "", Align::right, "pages_per_step_p99"},
                   {"miss", "%", Align::right, "p_any_miss_pct"},
                   {"resolve", "µs", Align::right, ""},
                   {"submit", "ms", Align::right, ""},
                   {"T_k", "ms", Align::right, "t_k_mean_ms"},
                   {"p99", "ms", Align::right, "t_k_p99_ms"},
                   {"W_k", "ms", Align::right, ""},
                   {"stall", "ms", Align::right, "stall_mean_ms"},
                   {"p99", "ms", Align::right, "stall_p99_ms"}};
  const std::vector<ConfigurationResult> all = configurations(results);
  for (const ConfigurationResult& c : all) {
    Cell name(c.name), load(c.workload);
    for (const LayerResult& layer : c.layers) {
      for (const RankResult& rank : layer.ranks) {
        Cell rank_cell = Cell::count(rank.rank);
        std::vector<std::string> others;
        for (const auto& [status, steps] : rank.status)
          if (status != "ok" && steps > 0) others.push_back(fmt::format("{} {}", steps, status));
        if (!others.empty()) {
          rank_cell.mark = std::string("!");
          table.footnotes.push_back(fmt::format("! {} ({}), layer {}, rank {}: steps not ok: {}", c.name, c.workload,
                                                layer.k, rank.rank, fmt::join(others, ", ")));
        }
        table.rows.push_back({name, load, Cell::count(layer.k), rank_cell, percent(rank.hit_rate), percent(rank.reuse_rate),
                              Cell::number(rank.miss_pages_per_step.mean, 0), Cell::number(rank.miss_pages_per_step.p99, 0),
                              percent(rank.p_any_miss), Cell::number(rank.resolve_us.mean, 0),
                              milliseconds(rank.t_submit_us.mean), milliseconds(rank.t_done_us.mean),
                              milliseconds(rank.t_done_us.p99), Cell::number(layer.window_ms, 2),
                              milliseconds(rank.stall_us.mean), milliseconds(rank.stall_us.p99)});
        if (rank.skipped && rank.owned > 0)
          table.footnotes.push_back(fmt::format(
              "~ {} ({}), layer {}, rank {}: {:.3f}% of the lookups delivered as zeros: rows never seen", c.name, c.workload,
              layer.k, rank.rank, 100.0 * static_cast<double>(*rank.skipped) / static_cast<double>(rank.owned)));
        name.shown_as = load.shown_as = std::string(" ");  // once is enough to read
      }
    }
  }
  table.footnotes.push_back(
      "hit, reuse: share of the rank's lookups found in the cache, or requested already in this step; miss: steps that read "
      "a page");
  table.footnotes.push_back(
      "submit: from t = 0, of the first layer it is s; T_k: last page's arrival - s; stall: the stream's measured wait at "
      "the gate");
  return table;
}

Table prefill_table(const Envelope& results) {
  Table table;
  table.title = "Prefill by chunk, layer and rank";
  table.head = head_of(results);
  table.columns = {{"configuration", "", Align::left, "", 22},
                   {"load", "", Align::left, ""},
                   {"chunks", "", Align::right, ""},
                   {"tokens", "", Align::right, ""},
                   {"chunk", "ms", Align::right, "chunk_mean_ms"},
                   {"k", "", Align::right, ""},
                   {"rank", "", Align::right, ""},
                   {"hit", "%", Align::right, ""},
                   {"reuse", "%", Align::right, ""},
                   {"pages", "chunk", Align::right, "pages_per_chunk_mean"},
                   {"most", "", Align::right, "pages_per_chunk_max"},
                   {"waves", "", Align::right, "waves_mean"},
                   {"read", "ms", Align::right, "read_mean_ms"},
                   {"most", "ms", Align::right, "read_max_ms"},
                   {"all", "ms", Align::right, "layer_mean_ms"}};
  for (const ConfigurationResult& c : configurations(results)) {
    if (!c.prefill) continue;
    Cell name(c.name), load(c.workload);
    for (const PrefillLayerResult& layer : c.prefill->layers) {
      table.rows.push_back({name, load, Cell::count(static_cast<std::int64_t>(c.prefill->chunk_ms.n)),
                            Cell::count(c.prefill->tokens), Cell::number(c.prefill->chunk_ms.mean, 1), Cell::count(layer.k),
                            Cell::count(layer.rank), percent(layer.hit_rate), percent(layer.reuse_rate),
                            Cell::number(layer.pages.mean, 0), Cell::number(layer.pages.max, 0),
                            Cell::number(layer.waves.mean, 1), Cell::number(layer.read_ms.mean, 1),
                            Cell::number(layer.read_ms.max, 1), Cell::number(layer.total_ms.mean, 1)});
      name.shown_as = load.shown_as = std::string(" ");
    }
  }
  table.footnotes.push_back(
      "between the steps and not in their times; a chunk's layers are read one after another, without the model's compute");
  table.footnotes.push_back(
      "read: first page submitted until the last one in; all: directory pass until the last row is delivered");
  return table;
}

Table full_table(const Envelope& results) {
  const std::vector<ConfigurationResult> all = configurations(results);
  Table table;
  table.title = "Decode step by placement, all figures";
  table.head = head_of(results);
  const auto column = [&](const char* header, const char* unit, const char* key = "", Align align = Align::right) {
    table.columns.push_back({header, unit, align, key, 0});
  };
  column("configuration", "", "", Align::left);
  column("load", "", "workload", Align::left);
  column("steps", "");
  for (const char* name : {"mean", "p50", "p99", "min", "max"}) column(name, "ms");
  column("block means from", "ms", "block_mean_min_ms");
  column("to", "ms", "block_mean_max_ms");
  column("slowdown", "%", "slowdown_pct");
  column("from", "%", "slowdown_lo_pct");
  column("to", "%", "slowdown_hi_pct");
  column("slowdown", "ms", "slowdown_ms");
  column("from", "ms", "slowdown_lo_ms");
  column("to", "ms", "slowdown_hi_ms");
  column("p99 slowdown", "%", "p99_slowdown_pct");
  column("from", "%", "p99_slowdown_lo_pct");
  column("to", "%", "p99_slowdown_hi_pct");
  column("Mann-Whitney p", "", "mann_whitney_p");
  column("run-order slope", "ms/block", "run_order_slope_ms_per_block");
  column("host, full size", "GiB", "host_full_geometry_gib");
  column("host, this run", "GiB", "host_computed_gib");
  column("measured", "GiB", "host_measured_gib");
  column("RSS", "GiB", "host_rss_gib");
  column("registered", "GiB", "host_registered_gib");
  column("mismatches", "");
  column("checked rows", "");
  column("paper slowdown", "%", "paper_slowdown_pct");
  column("paper mean", "ms", "paper_mean_ms");
  column("paper p99", "ms", "paper_p99_ms");
  column("paper host", "GiB", "paper_host_gib");
  for (const ConfigurationResult& c : all) {
    std::vector<Cell> row{c.name, c.workload, Cell::count(c.steps)};
    for (const auto& value : {c.step_ms.mean, c.step_ms.p50, c.step_ms.p99, c.step_ms.min, c.step_ms.max})
      row.push_back(Cell::number(value, 3));
    const auto [lo, hi] = std::minmax_element(c.block_mean_ms.begin(), c.block_mean_ms.end());
    for (const auto& bound : {lo, hi}) row.push_back(c.block_mean_ms.empty() ? Cell() : Cell::number(*bound, 3));
    const auto interval = [&](const std::optional<Interval>& value, int decimals) {
      row.push_back(value ? Cell::number(value->estimate, decimals, true) : Cell());
      row.push_back(value ? Cell::number(value->lo, decimals, true) : Cell());
      row.push_back(value ? Cell::number(value->hi, decimals, true) : Cell());
    };
    interval(c.slowdown ? std::optional(c.slowdown->mean_pct) : std::nullopt, 2);
    interval(c.slowdown ? std::optional(c.slowdown->mean_ms) : std::nullopt, 3);
    interval(c.slowdown ? c.slowdown->p99_pct : std::nullopt, 2);
    row.push_back(p_value(c.slowdown ? c.slowdown->mann_whitney_p : std::nullopt));
    row.push_back(c.run_order_slope_ms_per_block ? Cell::number(c.run_order_slope_ms_per_block->estimate, 4, true) : Cell());
    for (const auto& bytes : {c.host_memory.computed_full_geometry_bytes, c.host_memory.computed_bytes,
                              c.host_memory.measured_bytes, c.host_memory.rss_bytes, c.host_memory.registered_bytes})
      row.push_back(Cell::number(gib(bytes), 2));
    row.push_back(Cell::count(c.mismatches));
    row.push_back(Cell::count(c.checked_rows));
    const PaperValue paper = c.paper.value_or(PaperValue{});
    row.push_back(Cell::number(paper.mean_pct, 1, true));
    row.push_back(Cell::number(paper.mean_ms, 2));
    row.push_back(Cell::number(paper.p99_ms, 1));
    row.push_back(Cell::number(paper.host_gib, 0));
    table.rows.push_back(std::move(row));
  }
  table.footnotes = footnotes_of(all);
  return table;
}

}  // namespace slacktier

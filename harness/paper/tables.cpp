#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "harness/paper_run.hpp"

namespace slacktier {
namespace {

struct Unit {
  const char* key;
  const char* text;
  int decimals;
  bool sign;
};
constexpr Unit units[] = {{"slowdown_pct", "slowdown, %", 1, true}, {"slowdown_ms", "slowdown, ms", 2, true},
                          {"step_ms", "mean step, ms", 2, false},   {"p99_ms", "p99 step, ms", 1, false},
                          {"l1_hit", "layer 1 hit rate", 2, false}, {"read_ms", "read time T, ms", 2, false},
                          {"host_gib", "host, GiB", 0, false}};

const Unit& unit_of(const std::string& quantity) {
  return *std::find_if(std::begin(units), std::end(units), [&](const Unit& unit) { return quantity == unit.key; });
}

std::string published(const PaperCell& cell, const Unit& unit) {
  if (!cell.paper_lo) return "";
  const auto text = [&](double value) {
    return unit.sign ? fmt::format("{:+.{}f}", value, unit.decimals) : fmt::format("{:.{}f}", value, unit.decimals);
  };
  return *cell.paper_lo == *cell.paper_hi ? text(*cell.paper_lo) : text(*cell.paper_lo) + " to " + text(*cell.paper_hi);
}

}  // namespace

std::optional<double> PaperCell::off() const {
  if (!paper_lo) return {};
  return ours < *paper_lo ? ours - *paper_lo : ours > *paper_hi ? ours - *paper_hi : 0;
}

std::optional<double> predicted_rmse(const std::vector<PaperCell>& cells, const std::string& quantity) {
  double sum = 0;
  std::size_t n = 0;
  for (const PaperCell& cell : cells)
    if (const auto off = cell.off(); off && !cell.calibrated && cell.quantity == quantity) {
      sum += *off * *off;
      ++n;
    }
  if (n == 0) return {};
  return std::sqrt(sum / static_cast<double>(n));
}

std::vector<Table> paper_tables(const PaperRun& run) {
  std::vector<Table> tables;
  for (const PaperCell& cell : run.cells) {
    auto table = std::find_if(tables.begin(), tables.end(), [&](const Table& t) { return t.title == cell.table; });
    if (table == tables.end()) {
      table = tables.insert(tables.end(), Table{});
      table->title = cell.table;
      table->columns = {{"configuration", "", Align::left, ""},  {"load", "", Align::left, ""},
                        {"quantity", "", Align::left, ""},       {"paper", "", Align::right, ""},
                        {"virtual clock", "", Align::right, ""}, {"off", "", Align::right, ""},
                        {"origin", "", Align::left, ""}};
    }
    const Unit& unit = unit_of(cell.quantity);
    table->rows.push_back({cell.row, cell.load, unit.text, Cell(published(cell, unit)),
                           Cell::number(cell.ours, unit.decimals, unit.sign), Cell::number(cell.off(), unit.decimals, true),
                           cell.calibrated ? "calibrated" : "predicted"});
  }
  Table errors;
  errors.title = "Error of the predicted cells";
  errors.columns = {{"quantity", "", Align::left, ""},
                    {"cells", "", Align::right, ""},
                    {"RMSE", "", Align::right, ""},
                    {"largest", "", Align::right, ""},
                    {"where", "", Align::left, ""}};
  // Zeros are easy: the same without cells that the paper has within half a percent.
  std::vector<PaperCell> slowed;
  for (const PaperCell& cell : run.cells)
    if (cell.paper_lo && (*cell.paper_lo > 0.5 || *cell.paper_hi < -0.5)) slowed.push_back(cell);
  for (const Unit& unit : units) {
    const auto rmse = predicted_rmse(run.cells, unit.key);
    if (!rmse) continue;
    std::int64_t n = 0;
    const PaperCell* worst = nullptr;
    for (const PaperCell& cell : run.cells)
      if (cell.off() && !cell.calibrated && cell.quantity == unit.key) {
        ++n;
        if (!worst || std::abs(*cell.off()) > std::abs(*worst->off())) worst = &cell;
      }
    errors.rows.push_back({unit.text, Cell::count(n), Cell::number(*rmse, 2), Cell::number(*worst->off(), 2, true),
                           fmt::format("{}: {}, {}", worst->table, worst->row, worst->load)});
    if (std::string_view(unit.key) != "slowdown_pct") continue;
    const auto count = std::count_if(slowed.begin(), slowed.end(),
                                     [&](const PaperCell& c) { return !c.calibrated && c.quantity == unit.key; });
    if (const auto hard = predicted_rmse(slowed, unit.key))
      errors.rows.push_back({fmt::format("{}, where the paper's is beyond 0.5", unit.text), Cell::count(count),
                             Cell::number(*hard, 2), Cell(), Cell()});
  }
  if (!errors.rows.empty()) {
    errors.footnotes = {"off: how far outside the paper's value or range; calibrated cells do not count"};
    tables.insert(tables.begin(), errors);
  }
  return tables;
}

}  // namespace slacktier

#include "probe/both_table.hpp"

#include <fmt/format.h>

#include "reports/paper.hpp"

namespace slacktier {

Table both_table(const BothResult& result, const std::vector<std::string>& head) {
  Table table;
  table.title = fmt::format("Layers {} and {} delayed at once", result.first_layer, result.second_layer);
  table.head = head;
  const std::string first = fmt::format("X{}", result.first_layer), second = fmt::format("X{}", result.second_layer);
  table.columns = {{first, "ms", Align::right, "x1_ms"},
                   {second, "ms", Align::right, "x2_ms"},
                   {"measured", "ms", Align::right, ""},
                   {"95% from", "ms", Align::right, "lo_ms"},
                   {"to", "ms", Align::right, "hi_ms"},
                   {"Eq. 1", "ms", Align::right, "eq1_ms"},
                   {"sum", "ms", Align::right, "sum_ms"},
                   {"paper", "ms", Align::right, "paper_measured_ms"},
                   {"its Eq. 1", "ms", Align::right, "paper_eq1_ms"}};
  for (const BothDelayed& row : result.pairs) {
    Cell measured, eq1;
    if (result.first_layer == 1 && result.second_layer == 14)
      for (const Json& entry : paper_values().at("table3_both_delayed_ms"))
        if (entry.at("X1").get<double>() == row.first_ms && entry.at("X14").get<double>() == row.second_ms) {
          measured = Cell::number(entry.at("measured").get<double>(), 2);
          eq1 = Cell::number(entry.at("eq1").get<double>(), 2);
        }
    table.rows.push_back({Cell::number(row.first_ms, 2), Cell::number(row.second_ms, 2), Cell::number(row.measured_ms, 3),
                          Cell::number(row.lo_ms, 3), Cell::number(row.hi_ms, 3), Cell::number(row.eq1_ms, 3),
                          Cell::number(row.sum_ms, 3), measured, eq1});
  }
  table.footnotes.push_back(
      fmt::format("RMSE: Eq. 1 {:.3f} ms, the sum of excesses {:.3f} ms (the paper's Eq. 1: {:.2f} ms)", result.eq1_rmse_ms,
                  result.sum_rmse_ms, paper_values().at("exposure_model").at("injected_rmse_ms").get<double>()));
  table.footnotes.push_back(
      fmt::format("windows as this step has them, hooks included: layer {} {:.3f} ms, layer {} {:.3f} ms; "
                  "step {:.3f} ms ± {:.3f}; {}",
                  result.first_layer, result.first_window_ms, result.second_layer, result.second_window_ms, result.step_ms,
                  result.noise_ms, result.injector));
  return table;
}

Envelope both_envelope(const BothResult& result) {
  Envelope envelope;
  envelope.kind = "pairs";
  Json pairs = Json::array();
  for (const BothDelayed& row : result.pairs)
    pairs.push_back({{"x_ms", {row.first_ms, row.second_ms}},
                     {"measured_ms", row.measured_ms},
                     {"lo_ms", row.lo_ms},
                     {"hi_ms", row.hi_ms},
                     {"eq1_ms", row.eq1_ms},
                     {"sum_ms", row.sum_ms}});
  envelope.results = {{"layers", {result.first_layer, result.second_layer}},
                      {"windows_ms", {result.first_window_ms, result.second_window_ms}},
                      {"step_ms", result.step_ms},
                      {"noise_ms", result.noise_ms},
                      {"injector", result.injector},
                      {"pairs", pairs},
                      {"eq1_rmse_ms", result.eq1_rmse_ms},
                      {"sum_rmse_ms", result.sum_rmse_ms}};
  return envelope;
}

}  // namespace slacktier

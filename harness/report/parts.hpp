// What a report shows of a file.
#pragma once

#include <vector>

#include "reports/results.hpp"
#include "reports/table.hpp"

namespace slacktier::report {

struct FileTables {
  std::vector<Table> shown, folded;
};
// Tables of a file of any kind; kinds without a form of their own are shown field by field.
FileTables tables_of(const Envelope& envelope);
// Who made the file, where and how, field by field.
Table provenance_table(const Envelope& envelope);

// Figures for slacktier.figures.draw, each an object with id, title, axes, series and "description". `number` makes ids
// unique.
std::vector<Json> figures_of(const Envelope& envelope, std::size_t number);
// Of several files together.
std::vector<Json> figures_across(const std::vector<Envelope>& files);

}  // namespace slacktier::report

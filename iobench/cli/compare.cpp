// slacktier-iobench compare: files beside the first of them.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "iobench/cli/commands.hpp"
#include "iobench/compare.hpp"

namespace slacktier::cli {
namespace {

struct CompareArguments {
  std::vector<std::string> files;
  double tolerance_pct = 2;
  std::string format = "table";
};

int compare(const CompareArguments& a) {
  const TableFormat format = parse_table_format(a.format);
  const Envelope first = read_envelope(a.files.front(), "reads");
  bool slower = false;
  for (std::size_t i = 1; i < a.files.size(); ++i) {
    const Envelope other = read_envelope(a.files[i], "reads");
    Table table;
    table.title = fmt::format("{} against {}", a.files[i], a.files.front());
    table.columns = {{"load", "", Align::left, "", 44},  {"k", "", Align::right, ""},
                     {"before", "ms", Align::right, ""}, {"after", "ms", Align::right, ""},
                     {"change", "%", Align::right, ""},  {"95% interval", "%", Align::right, "interval_pct"},
                     {"verdict", "", Align::left, ""}};
    std::string last;
    for (const PointChange& change : compare_reads(first, other, a.tolerance_pct)) {
      Cell load(change.load);
      if (change.load == last) load.shown_as = std::string(" ");
      last = change.load;
      Cell verdict(to_string(change.change));
      if (!change.reason.empty()) {
        verdict.mark = "*";
        const std::string note = "* " + change.reason;
        if (std::find(table.footnotes.begin(), table.footnotes.end(), note) == table.footnotes.end())
          table.footnotes.push_back(note);
      }
      table.rows.push_back(
          {load, Cell::count(change.k), Cell::number(change.before_ms, 3), Cell::number(change.after_ms, 3),
           change.mean_pct ? Cell::number(change.mean_pct->estimate, 1, true)
                           : Cell::number(100 * (change.after_ms / change.before_ms - 1), 1, true),
           change.mean_pct ? Cell(fmt::format("[{:+.1f}, {:+.1f}]", change.mean_pct->lo, change.mean_pct->hi)) : Cell(),
           verdict});
      slower = slower || change.change == Change::slower;
    }
    fmt::print("{}\n", render(table, format));
  }
  std::fflush(stdout);
  return slower ? 1 : 0;
}

}  // namespace

Command add_compare(CLI::App& app) {
  const auto a = std::make_shared<CompareArguments>();
  app.add_option("files", a->files, "Reads files; each further one is compared with the first")
      ->required()
      ->expected(2, 100)
      ->type_name("FILE");
  app.add_option("--tolerance", a->tolerance_pct, "Percent within which two means count as the same")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--format", a->format, "table, md, csv or json")->capture_default_str();
  return [a] { return compare(*a); };
}

}  // namespace slacktier::cli

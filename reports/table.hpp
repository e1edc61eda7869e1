// One table, rendered four ways.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace slacktier {

enum class Align { left, right };

// A number keeps its value for CSV and JSON, and its decimals for text and Markdown. An empty cell is shown as a dash and is
// an empty field in CSV, null in JSON.
struct Cell {
  std::variant<std::monostate, std::string, double, std::int64_t> value;
  int decimals = 2;      // of a double in text and Markdown
  bool sign = false;     // a double is shown with + or -
  std::string shown_as;  // what text and Markdown show instead of the value: "<0.001"
  std::string mark;      // footnote mark behind it in text and Markdown: "*"

  Cell() = default;
  Cell(std::string text) : value(std::move(text)) {}
  Cell(const char* text) : value(std::string(text)) {}
  static Cell number(double number, int decimals = 2, bool sign = false);
  static Cell number(std::optional<double> number, int decimals = 2, bool sign = false);
  static Cell count(std::int64_t count);
};

struct Column {
  std::string header;  // "mean"
  std::string unit;    // "ms"; may be empty
  Align align = Align::right;
  std::string key;       // field name in CSV and JSON; derived from header and unit when empty: "mean_ms"
  std::size_t wrap = 0;  // text only: cells longer than this many characters go on in a further line; 0: never
};

struct Table {
  std::string title;
  std::vector<std::string> head;  // labels before the table: "windows: the paper's 4xH200, not this machine"
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;  // as many cells as columns
  std::vector<std::string> footnotes;
};

enum class TableFormat { text, markdown, csv, json };
// "table", "md", "csv", "json", as --format takes them. Throws InputError naming these.
TableFormat parse_table_format(const std::string& text);

// text: aligned columns, headers over units, for a terminal; columns are counted in characters of UTF-8, not bytes.
// markdown: a GitHub table. csv: RFC 4180 with CRLF, one header line of keys, no title, head or footnotes. json: {"title",
// "head", "columns", "rows": [{key: value}], "footnotes"}. Throws std::logic_error when a row has another number of cells
// than there are columns.
std::string render(const Table& table, TableFormat format);

}  // namespace slacktier

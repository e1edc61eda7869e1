#include "reports/table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <stdexcept>

#include "reports/error.hpp"
#include "reports/json.hpp"

namespace slacktier {
namespace {

constexpr const char* dash = "–";

// Characters of a UTF-8 text: bytes that do not continue one.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string key_of(const Column& column) {
  if (!column.key.empty()) return column.key;
  std::string key;
  const auto add = [&](std::string_view text) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      if (text.substr(i, 2) == "µ") {
        key += 'u';
        ++i;
      } else if (c == '%') {
        key += "pct";
      } else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
        key += c;
      } else if (c >= 'A' && c <= 'Z') {
        key += static_cast<char>(c - 'A' + 'a');
      } else if (!key.empty() && key.back() != '_') {
        key += '_';
      }
    }
  };
  add(column.header);
  if (!column.unit.empty()) {
    add(" ");
    add(column.unit);
  }
  while (!key.empty() && key.back() == '_') key.pop_back();
  return key;
}

std::string shown(const Cell& cell) {
  std::string text;
  if (!cell.shown_as.empty()) {
    text = cell.shown_as;
  } else if (const auto* word = std::get_if<std::string>(&cell.value)) {
    text = *word;
  } else if (const auto* count = std::get_if<std::int64_t>(&cell.value)) {
    text = std::to_string(*count);
  } else if (const auto* number = std::get_if<double>(&cell.value); number && std::isfinite(*number)) {
    text = fmt::format("{:.{}f}", *number, cell.decimals);
    // What rounds to zero has no sign.
    const bool zero = text.find_first_not_of("-0.") == std::string::npos;
    if (zero && text[0] == '-') text.erase(0, 1);
    if (cell.sign && !zero && text[0] != '-') text = fmt::format("+{}", text);
  } else {
    text = dash;
  }
  return text + cell.mark;
}

void check(const Table& table) {
  for (const auto& row : table.rows)
    if (row.size() != table.columns.size())
      throw std::logic_error(
          fmt::format("table '{}': a row of {} cells for {} columns", table.title, row.size(), table.columns.size()));
}

// Lines of at most `limit` characters, broken at spaces; a longer word stays whole. limit 0: one line.
std::vector<std::string> wrapped(const std::string& text, std::size_t limit) {
  std::vector<std::string> lines{""};
  if (limit == 0) return {text};
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    std::string& line = lines.back();
    if (line.empty()) {
      line = word;
    } else if (width_of(line) + 1 + width_of(word) <= limit) {
      line += fmt::format(" {}", word);
    } else {
      lines.push_back(fmt::format("  {}", word));
    }
    begin = end + 1;
  }
  return lines;
}

std::string padded(const std::string& text, std::size_t width, Align align) {
  const std::string fill(width - std::min(width, width_of(text)), ' ');
  return align == Align::left ? text + fill : fill + text;
}

std::string joined(const std::vector<std::string>& cells) {
  std::string line = fmt::format("{}", fmt::join(cells, "  "));
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string render_text(const Table& table) {
  const std::size_t count = table.columns.size();
  std::vector<std::size_t> width(count);
  std::vector<std::vector<std::vector<std::string>>> cells;  // row, column, line
  for (std::size_t c = 0; c < count; ++c)
    width[c] = std::max(width_of(table.columns[c].header), width_of(table.columns[c].unit));
  for (const auto& row : table.rows) {
    auto& lines = cells.emplace_back();
    for (std::size_t c = 0; c < count; ++c) {
      lines.push_back(wrapped(shown(row[c]), table.columns[c].wrap));
      for (const std::string& line : lines.back()) width[c] = std::max(width[c], width_of(line));
    }
  }

  std::string text;
  if (!table.title.empty()) text += table.title + "\n";
  for (const std::string& line : table.head) text += line + "\n";
  if (!text.empty()) text += "\n";
  std::vector<std::string> header, unit, rule;
  bool units = false;
  for (std::size_t c = 0; c < count; ++c) {
    const Column& column = table.columns[c];
    header.push_back(padded(column.header, width[c], column.align));
    unit.push_back(padded(column.unit, width[c], column.align));
    rule.push_back(std::string(width[c], '-'));
    units = units || !column.unit.empty();
  }
  text += joined(header) + (units ? joined(unit) : "") + joined(rule);
  for (const auto& row : cells) {
    std::size_t height = 1;
    for (const auto& lines : row) height = std::max(height, lines.size());
    for (std::size_t i = 0; i < height; ++i) {
      std::vector<std::string> line;
      for (std::size_t c = 0; c < count; ++c)
        line.push_back(padded(i < row[c].size() ? row[c][i] : "", width[c], table.columns[c].align));
      text += joined(line);
    }
  }
  if (!table.footnotes.empty()) text += "\n";
  for (const std::string& note : table.footnotes) text += note + "\n";
  return text;
}

std::string markdown_cell(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\n') {
      result += "<br>";
      continue;
    }
    if (c == '|' || c == '\\' || c == '*' || c == '_' || c == '<' || c == '`') result += '\\';
    result += c;
  }
  return result;
}

std::string render_markdown(const Table& table) {
  std::string text;
  if (!table.title.empty()) text += fmt::format("**{}**\n\n", markdown_cell(table.title));
  for (const std::string& line : table.head) text += fmt::format("- {}\n", markdown_cell(line));
  if (!table.head.empty()) text += "\n";
  std::string header = "|", rule = "|";
  for (const Column& column : table.columns) {
    const std::string name = column.unit.empty() ? column.header : fmt::format("{} ({})", column.header, column.unit);
    header += fmt::format(" {} |", markdown_cell(name));
    rule += column.align == Align::left ? " :--- |" : " ---: |";
  }
  text += header + "\n" + rule + "\n";
  for (const auto& row : table.rows) {
    text += "|";
    for (const Cell& cell : row) text += fmt::format(" {} |", markdown_cell(shown(cell)));
    text += "\n";
  }
  for (const std::string& note : table.footnotes) text += fmt::format("\n{}\n", markdown_cell(note));
  return text;
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

std::string csv_value(const Cell& cell) {
  if (const auto* word = std::get_if<std::string>(&cell.value)) return csv_field(*word);
  if (const auto* count = std::get_if<std::int64_t>(&cell.value)) return std::to_string(*count);
  if (const auto* number = std::get_if<double>(&cell.value); number && std::isfinite(*number))
    return fmt::format("{}", *number);
  return "";
}

std::string render_csv(const Table& table) {
  std::vector<std::string> fields;
  for (const Column& column : table.columns) fields.push_back(csv_field(key_of(column)));
  std::string text = fmt::format("{}\r\n", fmt::join(fields, ","));
  for (const auto& row : table.rows) {
    fields.clear();
    for (const Cell& cell : row) fields.push_back(csv_value(cell));
    text += fmt::format("{}\r\n", fmt::join(fields, ","));
  }
  return text;
}

std::string render_json(const Table& table) {
  Json columns = Json::array(), rows = Json::array();
  std::set<std::string> keys;
  for (const Column& column : table.columns) {
    if (!keys.insert(key_of(column)).second)
      throw std::logic_error("table '" + table.title + "': two columns have the key " + key_of(column));
    columns.push_back({{"key", key_of(column)}, {"header", column.header}, {"unit", column.unit}});
  }
  for (const auto& row : table.rows) {
    Json fields = Json::object();
    for (std::size_t c = 0; c < row.size(); ++c) {
      Json& field = fields[key_of(table.columns[c])];
      std::visit(
          [&](const auto& value) {
            if constexpr (!std::is_same_v<std::decay_t<decltype(value)>, std::monostate>) field = value;
          },
          row[c].value);
    }
    rows.push_back(fields);
  }
  Json document = {
      {"title", table.title}, {"head", table.head}, {"columns", columns}, {"rows", rows}, {"footnotes", table.footnotes}};
  replace_not_finite(document);
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

Cell Cell::number(double number, int decimals, bool sign) {
  Cell cell;
  cell.value = number;
  cell.decimals = decimals;
  cell.sign = sign;
  return cell;
}

Cell Cell::number(std::optional<double> number, int decimals, bool sign) {
  return number ? Cell::number(*number, decimals, sign) : Cell();
}

Cell Cell::count(std::int64_t count) {
  Cell cell;
  cell.value = count;
  return cell;
}

TableFormat parse_table_format(const std::string& text) {
  if (text == "table") return TableFormat::text;
  if (text == "md") return TableFormat::markdown;
  if (text == "csv") return TableFormat::csv;
  if (text == "json") return TableFormat::json;
  throw InputError("--format " + text + ": use table, md, csv or json");
}

std::string render(const Table& table, TableFormat format) {
  check(table);
  switch (format) {
    case TableFormat::text:
      return render_text(table);
    case TableFormat::markdown:
      return render_markdown(table);
    case TableFormat::csv:
      return render_csv(table);
    case TableFormat::json:
      return render_json(table);
  }
  throw std::logic_error("unknown table format");
}

}  // namespace slacktier

#include "reports/html.hpp"

#include <fmt/format.h>

#include <cstdint>

namespace slacktier {
namespace {

constexpr const char* style = R"css(
:root { color-scheme: light dark; --paper: #ffffff; --ink: #1c2024; --soft: #5a626b; --line: #d5d9de; --band: #f4f6f8; --link: #0b5f94; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #14171a; --ink: #e6e9ec; --soft: #a3abb3; --line: #3a4148; --band: #1d2226; --link: #7cc0ee; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem clamp(0.75rem, 3vw, 2.5rem) 3rem; max-width: 82rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.25; } h2 { font-size: 1.25rem; margin-top: 2.5rem; border-bottom: 1px solid var(--line); }
a { color: var(--link); } nav ul { padding: 0; display: flex; flex-wrap: wrap; gap: 0.25rem 1.25rem; list-style: none; }
p.note, .notes { color: var(--soft); font-size: 0.875rem; } .notes { margin: 0.4rem 0 1.5rem; padding-left: 1.1rem; overflow-wrap: anywhere; }
p { overflow-wrap: anywhere; }
.scroll { overflow-x: auto; margin-top: 1rem; } .scroll:focus-visible, summary:focus-visible { outline: 2px solid var(--link); }
table { border-collapse: collapse; font-size: 0.875rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding-bottom: 0.35rem; }
th, td { padding: 0.3rem 0.7rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
th.number, td.number { text-align: right; white-space: nowrap; } thead th { border-bottom: 2px solid var(--line); vertical-align: bottom; }
thead .unit { display: block; font-weight: 400; color: var(--soft); } tbody th { font-weight: 500; } tbody th:not(.number) { min-width: 9rem; }
tbody tr:nth-child(even) { background: var(--band); }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 28rem), 1fr)); gap: 1.5rem; margin: 1rem 0; }
figure { margin: 0; } figure svg { display: block; width: 100%; height: auto; max-width: 46rem; color: var(--ink); }
figure svg text { fill: currentColor; } figcaption { color: var(--soft); font-size: 0.875rem; overflow-wrap: anywhere; }
details { margin: 1rem 0; } summary { cursor: pointer; }
@media print {
  :root { --paper: #ffffff; --ink: #000000; --soft: #444444; --line: #bbbbbb; --band: #ffffff; --link: #000000; }
  body { max-width: none; padding: 0; font-size: 10pt; } nav { display: none; } .scroll { overflow: visible; }
  table { font-size: 7.5pt; } th, td { padding: 0.15rem 0.3rem; } th.number, td.number { white-space: normal; } tbody th:not(.number) { min-width: 0; }
  .notes, figcaption { font-size: 8pt; } figure, tr { break-inside: avoid; } h2, caption { break-after: avoid; }
}
)css";

std::string cell_text(const Cell& cell) {
  if (!cell.shown_as.empty()) return cell.shown_as + cell.mark;
  if (const auto* text = std::get_if<std::string>(&cell.value)) return *text + cell.mark;
  if (const auto* number = std::get_if<double>(&cell.value))
    return (cell.sign ? fmt::format("{:+.{}f}", *number, cell.decimals) : fmt::format("{:.{}f}", *number, cell.decimals)) +
           cell.mark;
  if (const auto* count = std::get_if<std::int64_t>(&cell.value)) return std::to_string(*count) + cell.mark;
  return "–" + cell.mark;
}

const char* class_of(const Column& column) { return column.align == Align::right ? " class=\"number\"" : ""; }

std::string list(const std::vector<std::string>& lines) {
  if (lines.empty()) return "";
  std::string html = "<ul class=\"notes\">";
  for (const std::string& line : lines) html += "<li>" + html_escaped(line) + "</li>";
  return html + "</ul>\n";
}

}  // namespace

std::string html_escaped(const std::string& text) {
  std::string out;
  for (const char c : text) switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  return out;
}

std::string html_table(const Table& table, const std::string& id) {
  std::string html = fmt::format(
      "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-labelledby=\"{0}-caption\">\n<table id=\"{0}\">"
      "<caption id=\"{0}-caption\">{1}</caption>\n<thead><tr>",
      id, html_escaped(table.title));
  for (const Column& column : table.columns)
    html += fmt::format("<th scope=\"col\"{}>{}{}</th>", class_of(column), html_escaped(column.header),
                        column.unit.empty() ? "" : "<span class=\"unit\">" + html_escaped(column.unit) + "</span>");
  html += "</tr></thead>\n<tbody>\n";
  for (const auto& row : table.rows) {
    html += "<tr>";
    for (std::size_t c = 0; c < row.size() && c < table.columns.size(); ++c) {
      const std::string text = html_escaped(cell_text(row[c]));
      html += c == 0 ? fmt::format("<th scope=\"row\"{}>{}</th>", class_of(table.columns[c]), text)
                     : fmt::format("<td{}>{}</td>", class_of(table.columns[c]), text);
    }
    html += "</tr>\n";
  }
  html += "</tbody></table></div>\n";
  std::vector<std::string> notes = table.head;
  notes.insert(notes.end(), table.footnotes.begin(), table.footnotes.end());
  return html + list(notes);
}

std::string html_page(const std::string& title, const std::vector<std::string>& head,
                      const std::vector<HtmlSection>& sections) {
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width, "
      "initial-scale=1\">\n<link rel=\"icon\" "
      "href=\"data:,\">\n<title>{0}</title>\n<style>{1}</style>\n</head>\n<body>\n<header>\n<h1>{0}</h1>\n",
      html_escaped(title), style);
  for (const std::string& line : head) html += "<p class=\"note\">" + html_escaped(line) + "</p>\n";
  html += "<nav aria-label=\"Sections\"><ul>";
  for (const HtmlSection& section : sections)
    html += fmt::format("<li><a href=\"#{}\">{}</a></li>", section.id, html_escaped(section.heading));
  html += "</ul></nav>\n</header>\n<main>\n";
  for (const HtmlSection& section : sections) {
    html += fmt::format("<section id=\"{0}\" aria-labelledby=\"{0}-heading\">\n<h2 id=\"{0}-heading\">{1}</h2>\n",
                        section.id, html_escaped(section.heading));
    for (const std::string& paragraph : section.paragraphs) html += "<p>" + html_escaped(paragraph) + "</p>\n";
    if (!section.figures.empty()) {
      html += "<div class=\"figures\">\n";
      for (const HtmlFigure& figure : section.figures)
        html +=
            fmt::format("<figure id=\"{}\" role=\"figure\" aria-label=\"{}\">\n{}\n<figcaption>{}</figcaption></figure>\n",
                        figure.id, html_escaped(figure.description), figure.svg, html_escaped(figure.caption));
      html += "</div>\n";
    }
    std::size_t number = 0;
    for (const Table& table : section.tables) html += html_table(table, fmt::format("{}-{}", section.id, ++number));
    for (const Table& table : section.details)
      html += fmt::format("<details><summary>{}</summary>\n{}</details>\n", html_escaped(table.title),
                          html_table(table, fmt::format("{}-{}", section.id, ++number)));
    html += "</section>\n";
  }
  return html + "</main>\n</body>\n</html>\n";
}

}  // namespace slacktier

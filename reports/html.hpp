// Tables and figures as one self-contained HTML page: no script, no network; light and dark by the reader's setting,
// readable on a phone and in print.
#pragma once

#include <string>
#include <vector>

#include "reports/table.hpp"

namespace slacktier {

struct HtmlFigure {
  std::string id, caption, svg;  // svg: an <svg> element, black drawn in currentColor
  std::string description;       // for who cannot see it
};

struct HtmlSection {
  std::string id, heading;
  std::vector<std::string> paragraphs;
  std::vector<HtmlFigure> figures;
  std::vector<Table> tables;
  std::vector<Table> details;  // folded away until asked for
};

// The text with what HTML reads as markup escaped.
std::string html_escaped(const std::string& text);

// A table with caption, column headers with scope, and its first column as row headers; heads and footnotes around it. Wide
// ones scroll in a region of their own that the keyboard can reach.
std::string html_table(const Table& table, const std::string& id);

std::string html_page(const std::string& title, const std::vector<std::string>& head,
                      const std::vector<HtmlSection>& sections);

}  // namespace slacktier

#include "harness/report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>

#include "harness/report/parts.hpp"
#include "platforms/error.hpp"
#include "python/embedded.hpp"
#include "reports/error.hpp"
#include "reports/html.hpp"
#include "reports/json.hpp"
#include "reports/results_table.hpp"

namespace slacktier {
namespace {

namespace fs = std::filesystem;

// The figures' SVG in their order; empty where they cannot be drawn, and `reason` says why.
std::vector<std::string> draw(const std::vector<Json>& figures, std::string& reason) {
  if (figures.empty()) return {};
  try {
    const Json drawn = call_python("slacktier.figures", "draw", Json{{"figures", figures}});
    return drawn.get<std::vector<std::string>>();
  } catch (const EnvironmentError& error) {
    reason = error.what();
    return {};
  }
}

std::string source_line(const Envelope& envelope) {
  const Json& p = envelope.provenance;
  std::string line = fmt::format("{}, schema {}/{}.{}", fs::path(envelope.file).filename().string(), envelope.kind,
                                 envelope.major, envelope.minor);
  if (p.is_object() && p.contains("tool"))
    line += fmt::format(
        "; made by {} {}, commit {}{}, seed {}, begun {}", p.value("tool", ""), p.value("version", ""),
        p.value("commit", "").substr(0, 12), p.value("dirty", false) ? " with changes" : "", p.value("seed", 0),
        p.contains("start_utc") && p["start_utc"].is_string() ? p["start_utc"].get<std::string>() : "at an unknown time");
  return line;
}

std::string file_name(const std::string& text) {
  std::string name;
  for (const char c : text) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '-';
  return name;
}

}  // namespace

ReportOutput write_report(const std::vector<std::string>& files, const fs::path& folder, const std::string& title) {
  if (files.empty()) throw InputError("report: name at least one file");
  std::vector<Envelope> envelopes;
  for (const std::string& file : files) envelopes.push_back(read_envelope(file));

  std::vector<Json> figures = report::figures_across(envelopes);
  std::vector<std::size_t> owner(figures.size(), 0);  // section of each figure; 0: of all files together
  for (std::size_t i = 0; i < envelopes.size(); ++i)
    for (Json& figure : report::figures_of(envelopes[i], i + 1)) {
      figures.push_back(std::move(figure));
      owner.push_back(i + 1);
    }
  ReportOutput output;
  const std::vector<std::string> drawn = draw(figures, output.without_figures);
  output.figures = drawn.size();

  std::vector<HtmlSection> sections;
  HtmlSection across{"together", "All files together", {}, {}, {}, {}};
  std::string markdown = fmt::format("# {}\n", title);
  std::vector<std::pair<std::string, Table>> csv;
  for (std::size_t i = 0; i < envelopes.size(); ++i) {
    const Envelope& envelope = envelopes[i];
    HtmlSection section;
    section.id = fmt::format("file-{}", i + 1);
    section.heading = fmt::format("{}: {}", envelope.kind, fs::path(envelope.file).filename().string());
    section.paragraphs = {source_line(envelope)};
    report::FileTables tables = report::tables_of(envelope);
    section.tables = tables.shown;
    section.details = tables.folded;
    const Table origin = report::provenance_table(envelope);
    section.details.push_back(origin);
    markdown += fmt::format("\n## {}\n\n{}\n", section.heading, section.paragraphs.front());
    std::size_t number = 0;
    for (const std::vector<Table>* group : {&section.tables, &section.details})
      for (const Table& table : *group) {
        markdown += "\n" + render(table, TableFormat::markdown);
        csv.emplace_back(fmt::format("{}-{}-{}.csv", file_name(fs::path(envelope.file).stem().string()), i + 1, ++number),
                         table);
      }
    if (envelope.kind == "results")
      csv.emplace_back(fmt::format("{}-{}-full.csv", file_name(fs::path(envelope.file).stem().string()), i + 1),
                       full_table(envelope));
    sections.push_back(std::move(section));
  }
  for (std::size_t f = 0; f < drawn.size(); ++f) {
    HtmlSection& section = owner[f] == 0 ? across : sections[owner[f] - 1];
    const std::string from =
        owner[f] == 0 ? "all files named above" : fs::path(envelopes[owner[f] - 1].file).filename().string();
    section.figures.push_back(
        {figures[f]["id"].get<std::string>(), fmt::format("{} From {}.", figures[f]["description"].get<std::string>(), from),
         drawn[f],
         fmt::format("{}. {}", figures[f]["title"].get<std::string>(), figures[f]["description"].get<std::string>())});
  }
  if (!across.figures.empty()) sections.insert(sections.begin(), std::move(across));

  std::vector<std::string> head{
      fmt::format("Made by slacktier-harness report {} of {} file(s).", tool_version(), files.size())};
  if (!output.without_figures.empty()) head.push_back("Without figures: " + output.without_figures);
  fs::create_directories(folder);
  const auto write = [&](const std::string& name, const std::string& text) {
    write_text_file(folder / name, text);
    output.files.push_back(folder / name);
  };
  write("report.html", html_page(title, head, sections));
  write("report.md", markdown);
  for (const auto& [name, table] : csv) write(name, render(table, TableFormat::csv));
  return output;
}

}  // namespace slacktier

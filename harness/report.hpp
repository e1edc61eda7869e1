// A report of result files of any kind: one HTML page, the same as Markdown, and every table as CSV.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace slacktier {

struct ReportOutput {
  std::vector<std::filesystem::path> files;  // page first
  std::size_t figures = 0;
  std::string without_figures;  // why there is none: matplotlib is missing
};

// Makes `folder` if need be. Files of several kinds go into one page, each with its tables, figures and provenance; windows
// and reads together give the figure of read times beside windows, results of several batches that of overhead against
// sessions. Throws InputError naming file and field, std::system_error when it cannot be written. Without matplotlib the
// tables come all the same.
ReportOutput write_report(const std::vector<std::string>& files, const std::filesystem::path& folder,
                          const std::string& title);

}  // namespace slacktier

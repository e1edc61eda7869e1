#include "tier/cli/describe.hpp"

#include <fmt/format.h>

#include "platforms/quantity.hpp"
#include "tier/image/header_area.hpp"

namespace slacktier::cli {

std::string describe_text(const ImageHeader& header) {
  const PageGeometry& g = header.geometry;
  std::string text = fmt::format(
      "table        {} (fingerprint {})\n"
      "rows         {}\n"
      "shards       {} ranks, {}\n"
      "pages        {} bytes: {} records of {} bytes and the trailer\n"
      "disks        {}, {} bytes each\n",
      header.table, header.fingerprint, header.origin, header.ranks, to_string(header.shard_map), g.page_bytes,
      g.rows_per_page, g.row_bytes, header.disks, header.disk_bytes());
  for (const std::string& path : header.paths) text += fmt::format("             {}\n", path);
  if (!header.paths.empty()) {
    text += fmt::format("staging      {:016x}, {}\n", header.nonce,
                        header.complete ? "complete"
                                        : fmt::format("interrupted: {} are there; stage again to resume",
                                                      bytes_of_text(header.staged_bytes, header.page_bytes())));
  }
  text += fmt::format("\n{:>7} {:>6} {:>13} {:>13} {:>13} {:>10}\n", "layer", "rank", "rows", "pages", "stored", "size");
  for (const ImageSegment& s : header.segments) {
    text += fmt::format("{:>7} {:>6} {:>13} {:>13} {:>13} {:>10}\n", s.layer, s.rank, s.rows, s.pages, s.stored_pages,
                        bytes_text(s.stored_pages * g.page_bytes));
  }
  if (header.scaled()) {
    text += "scaled: page p of a shard is stored as page p mod stored; row ids and geometry are those of the full table\n";
  }
  return text;
}

// What is stored of the header, in words for programs: units in names, and what follows from it.
nlohmann::json describe_json(const ImageHeader& header) {
  nlohmann::json json = header_json(header);
  for (nlohmann::json& segment : json["segments"]) {
    segment["base_bytes"] = segment["base"];
    segment.erase("base");
  }
  json.erase("disk");
  json.erase("disks");
  json["version"] = header.version;
  json["rows_per_page"] = header.geometry.rows_per_page;
  json["paths"] = header.paths;
  json["disk_bytes"] = header.disk_bytes();
  json["bytes"] = header.page_bytes();
  json["scaled"] = header.scaled();
  return json;
}

}  // namespace slacktier::cli

#include "reports/results.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>

#include "reports/error.hpp"
#include "reports/schema.hpp"

namespace slacktier {
namespace {

struct SchemaName {
  std::string kind;
  int major = 0, minor = 0;
};

constexpr int known_major = 1, known_minor = 0;

// "slacktier/<kind>/<major>.<minor>"
bool parse_schema_name(const std::string& text, SchemaName& name) {
  const std::string start = "slacktier/";
  const std::size_t slash = text.rfind('/'), dot = text.rfind('.');
  if (text.rfind(start, 0) != 0 || slash < start.size() || dot == std::string::npos || dot < slash) return false;
  name.kind = text.substr(start.size(), slash - start.size());
  const auto number = [&](std::size_t begin, std::size_t end, int& value) {
    const auto [stop, error] = std::from_chars(text.data() + begin, text.data() + end, value);
    return error == std::errc() && stop == text.data() + end && begin < end && value >= 0;
  };
  return number(slash + 1, dot, name.major) && number(dot + 1, text.size(), name.minor);
}

Json warnings_to_json(const std::vector<Warning>& warnings) {
  Json list = Json::array();
  for (const Warning& warning : warnings) {
    Json item = {{"code", warning.code}, {"message", warning.message}};
    if (!warning.field.empty()) item["field"] = warning.field;
    list.push_back(item);
  }
  return list;
}

// A file that somebody wrote by hand says neither who made it nor what to mind.
void complete(Json& document, std::vector<std::string>& notes) {
  if (!document.contains("provenance")) {
    document["provenance"] = {{"tool", "by hand"},     {"version", ""}, {"commit", "unknown"}, {"dirty", false},
                              {"argv", Json::array()}, {"seed", 0},     {"start_utc", nullptr}};
    notes.push_back("no provenance: taken for a file written by hand");
  }
  if (!document.contains("warnings")) document["warnings"] = Json::array();
}

}  // namespace

std::string to_text(Envelope envelope) {
  Json document = {{"schema", fmt::format("slacktier/{}/{}.{}", envelope.kind, envelope.major, envelope.minor)},
                   {"provenance", std::move(envelope.provenance)},
                   {"settings", std::move(envelope.settings)},
                   {"results", std::move(envelope.results)}};
  for (const std::string& pointer : replace_not_finite(document)) {
    // Inside an object "reason" says so; elsewhere only a warning can.
    if (!document[Json::json_pointer(pointer).parent_pointer()].is_object())
      envelope.warnings.push_back({"not_finite", "not a finite number, written as null", pointer});
  }
  document["warnings"] = warnings_to_json(envelope.warnings);
  const auto problems = validate(schema_for(envelope.kind), document);
  if (!problems.empty())
    throw std::logic_error(fmt::format("a {} file was about to be written against its schema: {} {}", envelope.kind,
                                       problems.front().pointer, problems.front().message));
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

void write_envelope(const std::filesystem::path& path, const Envelope& envelope) {
  const std::string text = to_text(envelope);
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path());
  write_text_file(path, text);
}

Envelope parse_envelope(std::string_view text, const std::string& name, std::string_view kind) {
  Json document = parse_json(text, name);
  const auto fail = [&](const std::string& pointer, const std::string& what) {
    throw InputError(
        fmt::format("{}:{}: {} {}", name, line_of(text, pointer), pointer.empty() ? "the document" : pointer, what));
  };
  if (!document.is_object()) fail("", "must be an object with schema, provenance, settings, results and warnings");
  if (!document.contains("schema")) fail("/schema", "is missing; it reads \"slacktier/<kind>/<major>.<minor>\"");
  SchemaName schema;
  if (!document["schema"].is_string() || !parse_schema_name(document["schema"].get<std::string>(), schema))
    fail("/schema", fmt::format("must read \"slacktier/<kind>/<major>.<minor>\", is {}", document["schema"].dump()));
  const std::vector<std::string> kinds = schema_kinds();
  if (std::find(kinds.begin(), kinds.end(), schema.kind) == kinds.end())
    fail("/schema", fmt::format("names the unknown kind '{}'; there are {}", schema.kind, fmt::join(kinds, ", ")));
  if (!kind.empty() && schema.kind != kind)
    fail("/schema", fmt::format("is of kind '{}'; a '{}' file is needed here", schema.kind, kind));
  if (schema.major != known_major)
    fail("/schema",
         fmt::format("has major version {}; this program reads {}.x: use a program of its version or make the file anew",
                     schema.major, known_major));

  Envelope envelope;
  const bool newer = schema.minor > known_minor;
  if (newer)
    envelope.notes.push_back(fmt::format("schema {}.{} is newer than {}.{}: fields unknown here are ignored", schema.major,
                                         schema.minor, known_major, known_minor));
  complete(document, envelope.notes);
  const auto problems = validate(schema_for(schema.kind), document, {.allow_unknown_fields = newer});
  if (!problems.empty()) {
    const std::string more = problems.size() > 1 ? fmt::format(" (and {} more)", problems.size() - 1) : "";
    fail(problems.front().pointer, problems.front().message + more);
  }

  envelope.kind = schema.kind;
  envelope.major = schema.major;
  envelope.minor = schema.minor;
  envelope.provenance = std::move(document["provenance"]);
  envelope.settings = std::move(document["settings"]);
  envelope.results = std::move(document["results"]);
  for (const Json& item : document["warnings"])
    envelope.warnings.push_back({item["code"].get<std::string>(), item["message"].get<std::string>(),
                                 item.contains("field") ? item["field"].get<std::string>() : ""});
  envelope.file = name;
  return envelope;
}

Envelope read_envelope(const std::filesystem::path& path, std::string_view kind) {
  return parse_envelope(read_text_file(path), path.string(), kind);
}

}  // namespace slacktier

#include "reports/results.hpp"

#include <cmath>

#include "reports/error.hpp"
#include "reports/schema.hpp"
#include "tests/catch.hpp"
#include "tests/unit/reports/examples.hpp"

using namespace slacktier;

namespace {

std::string refusal(const Json& document, std::string_view kind = "") {
  try {
    parse_envelope(document.dump(2), "f.json", kind);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

Json with(const std::string& kind, const std::string& pointer, const Json& value) {
  Json document = example(kind);
  document[Json::json_pointer(pointer)] = value;
  return document;
}

}  // namespace

TEST_CASE("files of every kind survive reading and writing", "[results]") {
  const ScratchFolder folder;
  for (const std::string& kind : schema_kinds()) {
    CAPTURE(kind);
    const Envelope envelope = read_envelope(example_path(kind), kind);
    CHECK(envelope.kind == kind);
    CHECK(envelope.notes.empty());
    CHECK(envelope.warnings.size() == 1);
    const auto path = folder.path / "new" / (kind + ".json");
    write_envelope(path, envelope);
    CHECK(parse_json(read_text_file(path), kind) == example(kind));
    // Equal input, equal bytes.
    CHECK(to_text(read_envelope(path)) == read_text_file(path));
  }
}

TEST_CASE("what is no envelope is refused by name and place", "[results]") {
  CHECK(refusal(Json::array()) ==
        "f.json:1: the document must be an object with schema, provenance, settings, results and warnings");
  CHECK(refusal(Json::object()).find("/schema is missing") != std::string::npos);
  for (const char* schema : {"slacktier/reads", "reads/1.0", "slacktier/reads/1", "slacktier/reads/1.x",
                             "slacktier/reads/-1.0", "slacktier/reads/1.0 "}) {
    CAPTURE(schema);
    CHECK(
        refusal(with("reads", "/schema", schema)).find("f.json:2: /schema must read \"slacktier/<kind>/<major>.<minor>\"") ==
        0);
  }
  CHECK(refusal(with("reads", "/schema", 3)).find("/schema must read") != std::string::npos);
  CHECK(refusal(with("reads", "/schema", "slacktier/reeds/1.0")) ==
        "f.json:2: /schema names the unknown kind 'reeds'; there are windows, reads, misses, gates, pairs, placement, "
        "control, hot-rows, exposure, results");
  CHECK(refusal(with("reads", "/schema", "slacktier/reads/2.0")).find("major version 2; this program reads 1.x") !=
        std::string::npos);
  CHECK(refusal(with("reads", "/schema", "slacktier/reads/0.9")).find("major version 0") != std::string::npos);
  CHECK(refusal(example("reads"), "windows") == "f.json:2: /schema is of kind 'reads'; a 'windows' file is needed here");
  CHECK(refusal(with("reads", "/schema", "slacktier/windows/1.0")).find("f.json:") == 0);
}

TEST_CASE("a wrong field is named with its line", "[results]") {
  Json document = with("placement", "/results/layers/14/threads", "two");
  std::string text = document.dump(2);
  const std::size_t at = text.find("\"two\"");
  const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  CHECK(refusal(document) == "f.json:" + std::to_string(line) + ": /results/layers/14/threads must be integer, is \"two\"");
  document = example("placement");
  document["settings"].erase("ranks");
  CHECK(refusal(document).find("/settings/ranks is missing") != std::string::npos);
  document["results"]["layers"]["x"] = Json::object();
  CHECK(refusal(document).find("(and 1 more)") != std::string::npos);
}

TEST_CASE("a newer minor version is read and noted", "[results]") {
  Json document = with("reads", "/schema", "slacktier/reads/1.7");
  document["results"][0]["colour"] = "green";
  const Envelope envelope = parse_envelope(document.dump(), "f.json");
  CHECK(envelope.minor == 7);
  REQUIRE(envelope.notes.size() == 1);
  CHECK(envelope.notes[0] == "schema 1.7 is newer than 1.0: fields unknown here are ignored");
  document["schema"] = "slacktier/reads/1.0";
  CHECK(refusal(document).find("/results/0/colour is unknown here") != std::string::npos);
}

TEST_CASE("a placement written by hand needs no provenance", "[results]") {
  Json document = example("placement");
  document.erase("provenance");
  document.erase("warnings");
  const Envelope envelope = parse_envelope(document.dump(), "f.json", "placement");
  CHECK(envelope.notes.size() == 1);
  CHECK(envelope.provenance["tool"] == "by hand");
  CHECK_NOTHROW(to_text(envelope));
}

TEST_CASE("no file is written against its schema", "[results]") {
  Envelope envelope = read_envelope(example_path("results"));
  envelope.results[0]["step_ms"].erase("mean");
  CHECK_THROWS_WITH(to_text(envelope), contains_text("/results/0/step_ms/mean is missing"));
  CHECK_THROWS_AS(to_text(envelope), std::logic_error);
  envelope.kind = "reeds";
  CHECK_THROWS_AS(to_text(envelope), InputError);
}

TEST_CASE("numbers that are none are written as null", "[results]") {
  Envelope envelope = read_envelope(example_path("results"));
  envelope.results[0]["step_ms"]["p50"] = std::nan("");
  envelope.settings["odds"] = {1.0, std::nan("")};
  const Json document = parse_json(to_text(envelope), "f.json");
  CHECK(document["results"][0]["step_ms"]["p50"].is_null());
  CHECK(document["results"][0]["step_ms"]["reason"] == "p50 is not a number");
  CHECK(document["settings"]["odds"][1].is_null());
  CHECK(document["warnings"].back() ==
        Json({{"code", "not_finite"}, {"message", "not a finite number, written as null"}, {"field", "/settings/odds/1"}}));
}

TEST_CASE("provenance says who, what and when", "[results]") {
  const Json facts = {{"host", {{"hostname", "h"}}}};
  const Json made =
      provenance({"slacktier-harness run", {"slacktier-harness", "run", "x"}, 18446744073709551615u, 951827696, facts});
  CHECK(made["tool"] == "slacktier-harness run");
  CHECK(made["version"] == tool_version());
  CHECK(made["argv"].size() == 3);
  CHECK(made["seed"] == 18446744073709551615u);
  CHECK(made["start_utc"] == "2000-02-29T12:34:56Z");
  CHECK(made["host"]["hostname"] == "h");
  Envelope envelope = read_envelope(example_path("gates"));
  envelope.provenance = made;
  CHECK_NOTHROW(to_text(envelope));
  CHECK_THROWS_AS(provenance({"t", {}, 1, 0, {{"seed", 2}}}), std::logic_error);
  CHECK((git_commit() == "unknown" || git_commit().size() == 40));
}

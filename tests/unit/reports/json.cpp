#include "reports/json.hpp"

#include <sys/stat.h>

#include <cmath>
#include <limits>

#include "reports/error.hpp"
#include "tests/catch.hpp"
#include "tests/unit/reports/examples.hpp"

using namespace slacktier;

namespace {

std::string refusal(const std::string& text) {
  try {
    parse_json(text, "f.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("only JSON is parsed", "[json]") {
  CHECK(parse_json(R"({"b": [1, 2.5, -3e2, true, null, "é"], "a": {}})", "f").dump() ==
        R"({"b":[1,2.5,-300.0,true,null,"é"],"a":{}})");
  for (const char* text :
       {"",        "{",         "[1,]",    R"({"a": 1,})", "NaN",      "[Infinity]", "[-Infinity]", "nan",
        "// x\n1", "/* x */ 1", "1 2",     "{a: 1}",       "{'a': 1}", "01",         "+1",          ".5",
        "1.",      "0x1",       "[1e999]", "\"\t\"",       "\"\xff\"", "tru",        R"({"a" 1})",  "[1 2]"}) {
    CAPTURE(text);
    CHECK(refusal(text) != "");
  }
}

TEST_CASE("refusals name file, line and column", "[json]") {
  CHECK(refusal("{\n  \"a\": 1,\n}") ==
        "f.json:3:1: not JSON: syntax error while parsing object key - unexpected '}'; expected string literal");
  CHECK(refusal("[1,\n nan]").rfind("f.json:2:3: not JSON: ", 0) == 0);
  CHECK(refusal("[1e999]").find("number overflow") != std::string::npos);
}

TEST_CASE("a doubled key is refused with its place", "[json]") {
  CHECK(refusal(R"({"a": [{}, {"x": 1, "y": 2, "x": 3}]})") == "f.json: the key /a/1/x appears twice");
  CHECK(refusal(R"([{"x": 1}, {"x": 1}, {"y": {"x": 1}}])") == "");
}

TEST_CASE("deep nesting is refused", "[json]") {
  CHECK(refusal(std::string(64, '[') + std::string(64, ']')) == "");
  CHECK(refusal(std::string(65, '[') + std::string(65, ']')).find("64 levels") != std::string::npos);
  CHECK(refusal(std::string(1000000, '[')).find("64 levels") != std::string::npos);
}

TEST_CASE("a pointer is found in its text", "[json]") {
  const std::string text = "{\n\"a\\n,[\": [1,\n{\"b\": \"}]\\\"\",\n\"c\": 2}],\n\"\": {\n\"x/y\": 3}}";
  parse_json(text, "text");
  CHECK(line_of(text, "") == 1);
  CHECK(line_of(text, "/a\n,[") == 2);
  CHECK(line_of(text, "/a\n,[/0") == 2);
  CHECK(line_of(text, "/a\n,[/1/b") == 3);
  CHECK(line_of(text, "/a\n,[/1/c") == 4);
  CHECK(line_of(text, "/a\n,[/1/none") == 3);
  CHECK(line_of(text, "/a\n,[/7") == 2);
  CHECK(line_of(text, "//x~1y") == 6);
  // Every value of a large example, against the line on which its text was printed.
  const Json whole = example("results");
  const std::string printed = read_text_file(example_path("results"));
  CHECK(line_of(printed, "/results/1/layers/1/ranks/0/status/late") > line_of(printed, "/results/1/layers/0"));
}

TEST_CASE("numbers that are none become null with a reason", "[json]") {
  Json value = {{"mean", std::nan("")},
                {"max", std::numeric_limits<double>::infinity()},
                {"list", {1.0, -std::numeric_limits<double>::infinity()}},
                {"fine", 1.5},
                {"inner", {{"x", std::nan("")}, {"reason", "no samples"}}}};
  CHECK(replace_not_finite(value) == std::vector<std::string>{"/mean", "/max", "/list/1", "/inner/x"});
  CHECK(
      value.dump() ==
      R"({"mean":null,"max":null,"list":[1.0,null],"fine":1.5,"inner":{"x":null,"reason":"no samples; x is not a number"},)"
      R"("reason":"mean is not a number; max is infinite"})");
}

TEST_CASE("files are written whole or not at all", "[json]") {
  const ScratchFolder folder;
  const auto path = folder.path / "a.json";
  write_text_file(path, "one");
  write_text_file(path, "two");
  CHECK(read_text_file(path) == "two");
  // No temporary file is left, neither after success nor after a failure.
  std::filesystem::create_directory(folder.path / "taken");
  CHECK_THROWS_AS(write_text_file(folder.path / "taken", "x"), std::system_error);
  CHECK_THROWS_WITH(write_text_file(folder.path / "none" / "a", "x"), contains_text("none/a"));
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path), {}) == 2);
  // A link stays one, and what it names is written.
  std::filesystem::create_symlink("a.json", folder.path / "link");
  write_text_file(folder.path / "link", "three");
  CHECK(std::filesystem::is_symlink(folder.path / "link"));
  CHECK(read_text_file(path) == "three");
  CHECK_THROWS_AS(read_text_file(folder.path / "none"), InputError);
  CHECK_THROWS_AS(read_text_file(folder.path), InputError);
}

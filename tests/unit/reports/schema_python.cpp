#include <cstdlib>
#include <fstream>

#include "reports/schema.hpp"
#include "tests/catch.hpp"
#include "tests/python.hpp"
#include "tests/unit/reports/mutants.hpp"

using namespace slacktier;

TEST_CASE("an independent validator agrees about changed examples", "[schema_python]") {
  const ScratchFolder folder;
  {
    std::ofstream file(folder.path / "documents.jsonl");
    for (const std::string& kind : schema_kinds()) {
      file << Json{{"kind", kind}, {"valid", true}, {"document", example(kind)}}.dump() << "\n";
      std::size_t count = 0;
      visit_mutants(kind, [&](const std::string& pointer, const std::string& change, const Json& document) {
        if (count++ % 5 != 0) return;  // all of them take half a minute
        const bool valid = validate(schema_for(kind), document).empty();
        file << Json{{"kind", kind}, {"valid", valid}, {"change", pointer + " " + change}, {"document", document}}.dump()
             << "\n";
      });
    }
  }
  const std::string source = SLACKTIER_SOURCE_DIR;
  const int status = std::system((test_python() + " -B '" + source + "/tests/unit/reports/validate.py' '" + source +
                                  "/reports/schemas' '" + (folder.path / "documents.jsonl").string() + "'")
                                     .c_str());
  if (WEXITSTATUS(status) == 77) return skip_test("python3 has no jsonschema with draft 2020-12");
  CHECK(status == 0);
}

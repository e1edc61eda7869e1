#include <cstdlib>
#include <fstream>

#include "reports/schema.hpp"
#include "tests/catch.hpp"
#include "tests/unit/reports/mutants.hpp"

using namespace slacktier;

TEST_CASE("an independent validator agrees about changed examples", "[schema_python]") {
  const ScratchFolder folder;
  {
    std::ofstream file(folder.path / "documents.jsonl");
    for (const std::string& kind : schema_kinds()) {
      file << Json{{"kind", kind}, {"valid", true}, {"document", example(kind)}}.dump() << "\n";
      const std::vector<Mutant> mutants = mutants_of(kind);
      for (std::size_t i = 0; i < mutants.size(); i += 5) {  // all of them take half a minute
        const Mutant& mutant = mutants[i];
        const bool valid = validate(schema_for(kind), mutant.document).empty();
        file << Json{{"kind", kind},
                     {"valid", valid},
                     {"change", mutant.pointer + " " + mutant.change},
                     {"document", mutant.document}}
                    .dump()
             << "\n";
      }
    }
  }
  const std::string source = SLACKTIER_SOURCE_DIR;
  const int status = std::system(("python3 -B '" + source + "/tests/unit/reports/validate.py' '" + source +
                                  "/reports/schemas' '" + (folder.path / "documents.jsonl").string() + "'")
                                     .c_str());
  if (WEXITSTATUS(status) == 77) return skip_test("python3 has no jsonschema with draft 2020-12");
  CHECK(status == 0);
}

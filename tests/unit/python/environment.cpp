// Where the interpreter finds packages: the rules first, then a virtual environment in use.
#include "python/environment.hpp"

#include <cstdlib>
#include <fstream>

#include "platforms/error.hpp"
#include "python/embedded.hpp"
#include "tests/catch.hpp"
#include "tests/unit/tier/scratch.hpp"

using namespace slacktier;
namespace fs = std::filesystem;

namespace {

void write(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file) << text;
}

}  // namespace

TEST_CASE("a virtual environment must have the embedded version", "[environment]") {
  const test::Scratch scratch;
  const fs::path folder = fs::path(scratch.file("x")).parent_path();
  const fs::path root = folder / "venv";
  CHECK_THROWS_WITH(read_virtual_environment(root, "3.11"), contains_text("no virtual environment"));
  write(root / "pyvenv.cfg", "home = /usr/bin\nversion = 3.12.4\n");
  CHECK_THROWS_WITH(read_virtual_environment(root, "3.11"),
                    contains_text("3.12.4") && contains_text("3.11") && contains_text("python -m slacktier.probe"));
  CHECK_THROWS_WITH(read_virtual_environment(root, "3.1"), contains_text("3.12.4"));
  CHECK_THROWS_WITH(read_virtual_environment(root, "3.12"), contains_text("is no directory"));
  fs::create_directories(root / "lib/python3.12/site-packages");
  CHECK_FALSE(read_virtual_environment(root, "3.12").system_packages);
  write(root / "pyvenv.cfg", "include-system-site-packages = true\nversion_info = 3.12.4.final.0\n");
  CHECK(read_virtual_environment(root, "3.12").system_packages);
  CHECK(pip_command(root, "torch") == (root / "bin/python").string() + " -m pip install torch");
  CHECK_THAT(pip_command({}, "torch"), contains_text("pip install torch"));
}

TEST_CASE("our modules lie beside an installed program, or in the source tree", "[environment]") {
  const test::Scratch scratch;
  const fs::path folder = fs::path(scratch.file("x")).parent_path();
  const fs::path program = folder / "bin", source = folder / "source";
  CHECK_THROWS_AS(own_modules(program, source), EnvironmentError);
  write(source / "slacktier/__init__.py", "");
  CHECK(own_modules(program, source) == source);
  const fs::path installed = folder / "share/slacktier/python";
  write(installed / "slacktier/__init__.py", "");
  CHECK(own_modules(program, source) == installed);
}

TEST_CASE("packages of VIRTUAL_ENV are used, and the system's are not", "[environment]") {
  const test::Scratch scratch;
  const fs::path folder = fs::path(scratch.file("x")).parent_path();
  const std::string version = embedded_python_version();
  if (version.empty()) return;
  write(folder / "pyvenv.cfg", "version = 2.7.18\n");
  // Another Python first on the PATH, as pyenv and conda put theirs, is not where the standard library is.
  write(folder / "other/bin/python3", "#!/bin/sh\nexit 1\n");
  fs::permissions(folder / "other/bin/python3", fs::perms::owner_all);
  write(folder / ("other/lib/python" + version + "/os.py"), "");
  ::setenv("PATH", ((folder / "other/bin").string() + ":" + std::getenv("PATH")).c_str(), 1);
  ::setenv("VIRTUAL_ENV", folder.c_str(), 1);
  CHECK_THROWS_AS(call_python("json", "dumps", Json::array({1})), EnvironmentError);
  // What failed is tried again.
  write(folder / "pyvenv.cfg", "version = " + version + ".1\n");
  write(folder / ("lib/python" + version + "/site-packages/only_here.py"), "import sys\ndef path():\n    return sys.path\n");
  const Json path = call_python("only_here", "path");
  bool system = false;
  for (const Json& entry : path) system = system || entry.get<std::string>().ends_with("dist-packages");
  CHECK_FALSE(system);
  CHECK_THAT(path.at(0).get<std::string>(), contains_text("python"));
  CHECK_THROWS_WITH(call_python("no_such_module", "f"), contains_text((folder / "bin/python").string()));
  ::unsetenv("VIRTUAL_ENV");
}

// The embedded interpreter with a module of the tests' own.
#include "python/embedded.hpp"

#include <csignal>
#include <cstdlib>
#include <system_error>
#include <thread>

#include "platforms/error.hpp"
#include "platforms/program.hpp"
#include "tests/catch.hpp"

using namespace slacktier;

namespace {

Json plain(const std::string& function, const Json& arguments = Json::object()) {
  // Read when the interpreter starts.
  ::unsetenv("VIRTUAL_ENV");
  ::setenv("PYTHONPATH", SLACKTIER_SOURCE_DIR "/tests/unit/python/modules", 1);
  return call_python("plain", function, arguments);
}

}  // namespace

TEST_CASE("functions take arguments by place and by name, and return what JSON holds", "[embedded]") {
  CHECK(plain("add", Json::array({1, 4}))["sum"] == 5);
  CHECK(plain("add", {{"first", 1}})["sum"] == 3);
  CHECK(plain("add", {{"first", 1}})["text"] == "größer");
  CHECK(plain("nothing").is_null());
  CHECK_THROWS_WITH(plain("not_json"), contains_text("plain.not_json: TypeError"));
  CHECK_THROWS_WITH(plain("not_finite"), contains_text("ValueError"));
  CHECK_THROWS_WITH(plain("absent"), contains_text("AttributeError") && contains_text("absent"));
  CHECK_THROWS_WITH(plain("add", {{"third", 1}}), contains_text("TypeError"));
}

TEST_CASE("exceptions become our error types", "[embedded]") {
  CHECK_THROWS_AS(plain("fail", {{"kind", "UsageError"}}), UsageError);
  CHECK_THROWS_AS(plain("fail", {{"kind", "CheckFailed"}}), CheckFailed);
  CHECK_THROWS_AS(plain("fail", {{"kind", "EnvironmentLacks"}}), EnvironmentError);
  CHECK_THROWS_AS(plain("fail", {{"kind", "DeviceFailed"}}), DeviceError);
  CHECK_THROWS_WITH(plain("fail", {{"kind", "UsageError"}, {"message", "what to do"}}), "what to do");
  CHECK_THROWS_AS(plain("divide", {{"by", 0}}), PythonError);
  CHECK_THROWS_WITH(plain("divide", {{"by", 0}}),
                    contains_text("plain.divide: ZeroDivisionError: division by zero (plain.py:"));
  try {
    plain("open_file", {{"path", "/no/such/file"}});
    FAIL("a file that is not there was opened");
  } catch (const std::system_error& error) {
    CHECK(error.code() == std::errc::no_such_file_or_directory);
    CHECK_THAT(error.what(), contains_text("/no/such/file"));
  }
}

TEST_CASE("a package that is missing or broken is named, with what installs it", "[embedded]") {
  CHECK_THROWS_AS(plain("needs", {{"package", "no_such_package"}}), EnvironmentError);
  CHECK_THROWS_WITH(plain("needs", {{"package", "no_such_package.part"}}),
                    contains_text("no_such_package") && contains_text("pip install no_such_package"));
  CHECK_THROWS_WITH(plain("needs", {{"package", "slacktier.gone"}}), contains_text("no module slacktier.gone"));
  CHECK_THROWS_AS(call_python("no_such_module", "f"), EnvironmentError);
  CHECK_THROWS_AS(plain("broken"), EnvironmentError);
}

TEST_CASE("SIGINT ends a call, and is the program's again afterwards", "[embedded]") {
  CHECK(run_program("test", [] {
          plain("add", {{"first", 1}});
          CHECK_FALSE(interrupted());
          CHECK_THROWS_AS(plain("interrupt"), Interrupted);
          CHECK_FALSE(interrupted());
          ::raise(SIGINT);
          CHECK(interrupted());
          throw_if_interrupted();
          return 0;
        }) == ExitCode::interrupted);
}

TEST_CASE("any thread may call", "[embedded]") {
  int sum = 0;
  std::thread other([&] { sum = plain("add", Json::array({20, 22}))["sum"].get<int>(); });
  plain("add", Json::array({1, 1}));
  other.join();
  CHECK(sum == 42);
}

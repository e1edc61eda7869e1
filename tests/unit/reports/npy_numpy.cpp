#include <cstdint>
#include <cstdlib>

#include "reports/npy.hpp"
#include "reports/samples.hpp"
#include "tests/catch.hpp"
#include "tests/python.hpp"
#include "tests/unit/reports/examples.hpp"

using namespace slacktier;

TEST_CASE("numpy reads what we write and we read what numpy writes", "[npy_numpy]") {
  const ScratchFolder folder;
  std::vector<double> samples;
  for (int i = 0; i < 1000; ++i) samples.push_back(29 + i * 7919 % 1000 / 250.0);
  write_npy(folder.path, "ours_f8.npy", samples);
  write_npy(folder.path, "ours_f4.npy", NpyArray{{2, 3}, std::vector<float>{0.5f, 1, 2, 3, 4, -5}});
  write_npy(folder.path, "ours_i8.npy", NpyArray{{3}, std::vector<std::int64_t>{1, -2, std::int64_t{1} << 62}});
  const Json expected = {
      {"mean", summarise(samples).mean}, {"p50", percentile(samples, 0.5)}, {"p99", percentile(samples, 0.99)}};
  write_text_file(folder.path / "expected.json", expected.dump());

  const std::string script = std::string(SLACKTIER_SOURCE_DIR) + "/tests/unit/reports/numpy_files.py";
  const int status = std::system((test_python() + " -B '" + script + "' '" + folder.path.string() + "'").c_str());
  if (WEXITSTATUS(status) == 77) return skip_test("python3 has no numpy");
  REQUIRE(status == 0);

  const NpyArray squares = read_npy(folder.path / "theirs_f8.npy");
  CHECK(squares.shape == std::vector<std::size_t>{4, 5});
  CHECK(squares.as_double()[19] == 361);
  CHECK(std::get<std::vector<float>>(read_npy(folder.path / "theirs_f4.npy").values) == std::vector<float>{0.25f, -1});
  CHECK(std::get<std::vector<std::int64_t>>(read_npy(folder.path / "theirs_i8.npy").values) ==
        std::vector<std::int64_t>{7, -9});
  CHECK(read_npy(folder.path / "theirs_v2.npy").as_double() == std::vector<double>{1, 2, 3});
  for (const char* name : {"fortran", "big_endian", "scalar", "objects", "int32"}) {
    CAPTURE(name);
    CHECK_THROWS(read_npy(folder.path / (std::string(name) + ".npy")));
  }
}

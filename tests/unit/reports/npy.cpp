#include "reports/npy.hpp"

#include <cstdint>
#include <cstring>
#include <fstream>
#include <limits>

#include "reports/error.hpp"
#include "reports/json.hpp"
#include "reports/sha256.hpp"
#include "tests/catch.hpp"
#include "tests/unit/reports/examples.hpp"

using namespace slacktier;

namespace {

// A format 1.0 file with any header and data.
std::string file_with(const std::string& header, const std::string& data) {
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  return bytes + header + data;
}

std::string refusal(const std::string& bytes) {
  const ScratchFolder folder;
  write_text_file(folder.path / "x.npy", bytes);
  try {
    read_npy(folder.path / "x.npy");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("arrays survive writing and reading bit for bit", "[npy]") {
  const ScratchFolder folder;
  constexpr double inf = std::numeric_limits<double>::infinity();
  const NpyArray arrays[] = {
      {{3}, std::vector<double>{1.5, -0.0, inf}},
      {{2, 3}, std::vector<double>{1, 2, 3, 4, 5, 6}},
      {{2}, std::vector<float>{0.1f, 3e38f}},
      {{4},
       std::vector<std::int64_t>{0, -1, std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()}},
      {{0}, std::vector<double>{}},
      {{0, 5}, std::vector<float>{}}};
  for (const NpyArray& array : arrays) {
    const SampleFile file = write_npy(folder.path / "deep" / "er", "a.npy", array);
    CHECK(file.file == "a.npy");
    CHECK(file.sha256 == sha256_file(folder.path / "deep" / "er" / "a.npy"));
    const NpyArray read = read_npy(folder.path / "deep" / "er", file);
    CHECK(read.shape == array.shape);
    CHECK(read.values == array.values);
    CHECK(std::filesystem::file_size(folder.path / "deep" / "er" / "a.npy") % 64 ==
          std::visit([](const auto& v) { return v.size() * sizeof(v[0]); }, array.values) % 64);
  }
  CHECK(arrays[2].as_double()[0] == static_cast<double>(0.1f));
  CHECK_THROWS_AS(write_npy(folder.path, "b.npy", NpyArray{{2}, std::vector<double>{1}}), std::logic_error);
  CHECK_THROWS_AS(write_npy(folder.path, "b.npy", NpyArray{{1, 1, 1}, std::vector<double>{1}}), std::logic_error);
}

TEST_CASE("other samples than the result's are refused", "[npy]") {
  const ScratchFolder folder;
  const std::vector<double> samples{1, 2};
  const SampleFile file = write_npy(folder.path, "a.npy", samples);
  write_npy(folder.path, "a.npy", std::vector<double>{1, 3});
  CHECK_THROWS_WITH(read_npy(folder.path, file), contains_text("not the samples it was made from"));
  CHECK_THROWS_WITH(read_npy(folder.path / "none.npy"), contains_text("none.npy"));
}

TEST_CASE("files that are no sample arrays are refused by name and field", "[npy]") {
  const std::string eight(8, '\0');
  CHECK(refusal(file_with("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }\n", eight)) == "");
  CHECK(refusal(file_with("{\"shape\":(1,1),\"descr\":\"<f8\",\"fortran_order\":False}", eight)) == "");
  const std::pair<std::string, std::string> cases[] = {
      {"", "not an .npy file"},
      {"PK\x03\x04 a zip archive", "not an .npy file"},
      {std::string("\x93NUMPY\x04\x00\x02\x00{}", 12), "format 4.0 is unknown"},
      {std::string("\x93NUMPY\x01\x00\xff\x00{}", 12), "torn"},
      {std::string("\x93NUMPY\x02\x00\x02\x00", 10), "torn"},
      {file_with("{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }", eight),
       "holds 8 bytes of data, its shape asks for 16"},
      {file_with("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }", eight + "x"), "holds 9 bytes"},
      {file_with("{'descr': '<f8', 'fortran_order': True, 'shape': (1,), }", eight), "fortran_order must be False"},
      {file_with("{'descr': '>f8', 'fortran_order': False, 'shape': (1,), }", eight), "descr '>f8' is not read"},
      {file_with("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", eight), "descr '|O' is not read"},
      {file_with("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,), }", eight),
       "descr is not one plain dtype"},
      {file_with("{'descr': '<f8', 'fortran_order': False, 'shape': (), }", eight), "shape has 0 dimensions"},
      {file_with("{'descr': '<f8', 'fortran_order': False, 'shape': (1,1,1), }", eight), "shape has 3 dimensions"},
      {file_with("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }", eight), "shape is not a tuple of numbers"},
      {file_with("{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999,), }", eight),
       "shape is too large"},
      {file_with("{'descr': '<f8', 'fortran_order': False, 'shape': (900000000000000, 900000000000000), }", eight),
       "more than fits memory"},
      {file_with("{'descr': '<f8', 'fortran_order': False, }", eight), "shape is missing"},
      {file_with("{'descr': '<f8', 'descr': '<f8', 'fortran_order': False, 'shape': (1,), }", eight), "descr appears twice"},
      {file_with("{'descr': '<f8', 'fortran_order': 0, 'shape': (1,), }", eight), "fortran_order is neither"},
      {file_with("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), 'x': 1}", eight), "x is unknown"},
      {file_with("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), } + 1", eight), "header has text behind"},
      {file_with("{'descr': '<f8", eight), "string without end"},
      {file_with("{", eight), "lacks"},
      {file_with("{'shape': (1", eight), "lacks"},
  };
  for (const auto& [bytes, message] : cases) {
    CAPTURE(bytes, message);
    CHECK_THAT(refusal(bytes), contains_text(message));
  }
}

TEST_CASE("hashes are SHA-256", "[npy]") {
  // FIPS 180-2, appendix B.1.
  CHECK(sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256_hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  const ScratchFolder folder;
  const std::string text(200000, 'a');
  write_text_file(folder.path / "a", text);
  CHECK(sha256_file(folder.path / "a") == sha256_hex(text));
  CHECK_THROWS_AS(sha256_file(folder.path / "b"), InputError);
}

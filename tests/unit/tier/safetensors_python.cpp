// Files that the `safetensors` Python package wrote, read by us; and ours, read by it.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/python.hpp"
#include "tests/unit/tier/safetensors.hpp"
#include "tier/image.hpp"
#include "tier/rows.hpp"

using namespace slacktier;

namespace {

// The interpreter that set-up prepared, or the system's.
std::string python() {
  const std::string prepared = std::string(SLACKTIER_SOURCE_DIR) + "/build/python/bin/python3";
  return std::filesystem::exists(prepared) ? prepared : test_python();
}

int run_script(const test::Scratch& scratch) {
  const std::string script = std::string(SLACKTIER_SOURCE_DIR) + "/tests/unit/tier/safetensors_files.py";
  return std::system((python() + " -B '" + script + "' '" + scratch.file("") + "'").c_str());
}

}  // namespace

TEST_CASE("files of the safetensors package are read right, and it reads ours", "[safetensors_python]") {
  const test::Scratch scratch;
  scratch.write("ours.safetensors",
                test::safetensors_bytes(
                    {{"a", "BF16", {3, 4}, test::pattern(24, 1)}, {"b", "F8_E4M3", {2, 32}, test::pattern(64, 2)}}, 8 - 3));
  const int status = run_script(scratch);
  if (WEXITSTATUS(status) == 77) return skip_test("python3 has no package safetensors; ci/setup.sh installs it");
  REQUIRE(status == 0);

  // expected.json: for each table the records of its layers, in hexadecimal, as Python packed them.
  const nlohmann::json expected = nlohmann::json::parse(scratch.read("expected.json"));
  REQUIRE(expected.size() == 4);
  for (const nlohmann::json& table : expected) {
    const std::string name = table["spec"]["name"].get<std::string>();
    CAPTURE(name);
    const TableSpec spec = load_table_spec(scratch.write(name + ".json", table["spec"].dump()));
    const auto rows = checkpoint_table(spec, scratch.file(table["path"].get<std::string>()));
    REQUIRE(table["layers"].size() == spec.layers.size());
    for (std::size_t l = 0; l < spec.layers.size(); ++l) {
      const auto wanted = table["layers"][l].get<std::vector<std::string>>();
      REQUIRE(wanted.size() == spec.layers[l].rows);
      const auto origin = rows->origin(l, make_shard(spec, l, ShardMap::contiguous, 1, 0));
      std::vector<std::byte> record(spec.row_bytes);
      for (std::uint64_t row = 0; row < wanted.size(); ++row) {
        origin->row(row, record.data());
        std::string hex;
        for (const std::byte b : record) {
          hex += "0123456789abcdef"[std::to_integer<unsigned>(b) >> 4];
          hex += "0123456789abcdef"[std::to_integer<unsigned>(b) & 15];
        }
        REQUIRE(hex == wanted[row]);
      }
    }
    StageOptions options;
    options.disks = {scratch.file(name + ".img")};
    options.rows = rows;
    stage_image(spec, options);
    CHECK(verify_image(spec, options.disks, 0, {}, 0, rows).bad == 0);
  }
}

// Other load on the disk of a measurement: tenants as processes, writes.
#include <fcntl.h>

#include <cstdint>
#include <filesystem>

#include "iobench/background_write.hpp"
#include "iobench/tenants.hpp"
#include "platforms/error.hpp"
#include "tests/catch.hpp"
#include "tests/unit/tier/small_table.hpp"

using namespace slacktier;
using namespace slacktier::testing;

TEST_CASE("tenants are processes that read until they are told to end", "[neighbours]") {
  const ScratchFolder folder;
  LoadOptions options;
  options.images = {read_image_header(stage_small(folder, small_table(folder), 1))};
  const std::vector<LayerPages> pages{{1, 20}, {3, 5}};
  TenantProcesses tenants(2, options, pages, {});
  const auto reports = tenants.stop();
  REQUIRE(reports.size() == 2);
  for (const auto& report : reports) {
    CHECK(report.batches >= 1);
    CHECK(report.batch_us > 0);
  }
  options.source = "floppy";
  CHECK_THROWS_WITH(TenantProcesses(1, options, pages, {}), contains_text("tenant process 2") && contains_text("floppy"));
}

TEST_CASE("writes go to a file without a name, which goes when they end", "[neighbours]") {
  const ScratchFolder folder;
  const std::string place = std::filesystem::path(folder.file("x")).parent_path();
  const auto names = [&] { return std::distance(std::filesystem::directory_iterator(place), {}); };
  {
    BackgroundWrite writes(place, 1000, 2 << 20);
    CHECK(names() == 0);
    CHECK(writes.stop() >= 0);
  }
  CHECK(names() == 0);
  CHECK_THROWS(BackgroundWrite(place + "/absent", 1));
  CHECK_THROWS_AS(BackgroundWrite("/proc", 1), EnvironmentError);
}

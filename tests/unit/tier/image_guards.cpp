// What staging, reading and discarding refuse, and how an interrupted staging goes on.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <thread>

#include "platforms/error.hpp"
#include "tests/catch.hpp"
#include "tests/unit/tier/scratch.hpp"
#include "tier/image.hpp"

using namespace slacktier;
using test::Scratch;
using test::small_engram;

namespace {

StageOptions options_for(std::vector<std::string> disks) {
  StageOptions options;
  options.disks = std::move(disks);
  options.threads = 2;
  return options;
}

// Stops a staging after a fiftieth of a second: too soon for all of a large image.
StageOptions stopping_soon(StageOptions options) {
  options.progress = [](std::uint64_t, std::uint64_t) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    throw Interrupted();
  };
  return options;
}

}  // namespace

TEST_CASE("an interrupted staging is refused by readers and resumed by staging", "[image_guards]") {
  const Scratch scratch;
  const TableSpec spec = small_engram(scratch, 100'000);
  StageOptions options = options_for({scratch.file("a.img"), scratch.file("b.img")});
  options.max_bytes = 200 << 20;
  ImageHeader stopped;
  for (int attempt = 0; attempt < 100 && stopped.staged_bytes == 0; ++attempt) {
    REQUIRE_THROWS_AS(stage_image(spec, stopping_soon(options)), Interrupted);
    stopped = read_image_header(options.disks);
  }
  CHECK_FALSE(stopped.complete);
  CHECK(stopped.staged_bytes > 0);
  CHECK(stopped.staged_bytes < stopped.page_bytes());
  CHECK_THROWS_WITH(open_image(options.disks, spec),
                    contains_text("interrupted") && contains_text("same settings to resume"));
  CHECK_THROWS_AS(verify_image(spec, options.disks, 0, {}), UsageError);

  const StageReport resumed = stage_image(spec, options);
  CHECK(resumed.written == resumed.bytes - stopped.staged_bytes);
  CHECK(verify_image(spec, options.disks, 0, {}).bad == 0);
  CHECK(open_image(options.disks, spec).nonce == stopped.nonce);
  CHECK(stage_image(spec, options).written == 0);  // all there
}

TEST_CASE("a disk that fills up on the way keeps what is written", "[image_guards]") {
  const Scratch scratch;
  const TableSpec spec = small_engram(scratch, 100'000);
  StageOptions options = options_for({scratch.file("a.img")});
  options.max_bytes = 100 << 20;
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  // The space was claimed, and then the system refuses to write further: the limit is lowered while pages are written.
  options.progress = [&](std::uint64_t, std::uint64_t) {
    const rlimit low{50 << 20, before.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &low);
  };
  try {
    stage_image(spec, options);
    ::setrlimit(RLIMIT_FSIZE, &before);
    FAIL("staged beyond the limit");
  } catch (const std::system_error& error) {
    ::setrlimit(RLIMIT_FSIZE, &before);
    CHECK(error.code().value() == EFBIG);
    INFO(error.what());
    CHECK(std::string(error.what()).find("a.img at byte") != std::string::npos);
    CHECK(std::string(error.what()).find("stage again to resume") != std::string::npos);
  }
  options.progress = {};
  const std::uint64_t staged = read_image_header(options.disks).staged_bytes;
  CHECK(staged > 0);
  const StageReport resumed = stage_image(spec, options);
  CHECK(resumed.written == resumed.bytes - staged);
  CHECK(verify_image(spec, options.disks, 0, {}).bad == 0);

  // The same limit from the start is met before anything is written, and nothing is left behind.
  const rlimit low{50 << 20, before.rlim_max};
  options.disks = {scratch.file("early.img")};
  ::setrlimit(RLIMIT_FSIZE, &low);
  CHECK_THROWS_WITH(stage_image(spec, options), contains_text("early.img") && contains_text("ulimit -f"));
  ::setrlimit(RLIMIT_FSIZE, &before);
  CHECK_FALSE(std::filesystem::exists(options.disks[0]));
  std::signal(SIGXFSZ, old_handler);
}

TEST_CASE("too little space is told before the first page", "[image_guards]") {
  const Scratch scratch;
  TableSpec spec = load_table_spec("engram_v41");
  for (int layer = 20; layer < 400; ++layer) {  // 40 TB
    spec.layers.push_back(spec.layers[0]);
    spec.layers.back().layer = layer;
  }
  const StageOptions options = options_for({scratch.file("a.img"), scratch.file("b.img")});
  try {
    stage_image(spec, options);
    FAIL("40 TB were staged");
  } catch (const EnvironmentError& error) {
    INFO(error.what());
    const std::uint64_t needed = plan_image(spec, options).disk_bytes() * 2;
    CHECK(std::string(error.what()).find(fmt::format("needs {} more bytes", needed)) != std::string::npos);
    CHECK(std::string(error.what()).find("free") != std::string::npos);
  }
  CHECK_FALSE(std::filesystem::exists(options.disks[0]));
  CHECK_FALSE(std::filesystem::exists(options.disks[1]));
}

TEST_CASE("a foreign file is never overwritten", "[image_guards]") {
  const Scratch scratch;
  const TableSpec spec = small_engram(scratch, 500);
  const std::string diary = scratch.write("diary.txt", "dear diary");
  CHECK_THROWS_WITH(stage_image(spec, options_for({scratch.file("a.img"), diary})),
                    contains_text("diary.txt") && contains_text("no image"));
  CHECK_THROWS_WITH(discard_image({diary}, {}), contains_text("no image"));
  CHECK_THROWS_WITH(read_image_header({diary}), contains_text("is not an image"));
  CHECK(scratch.read("diary.txt") == "dear diary");
  CHECK_FALSE(std::filesystem::exists(scratch.file("a.img")));
  CHECK_THROWS_WITH(stage_image(spec, options_for({scratch.file("")})), contains_text("neither a file nor a block device"));
  CHECK_THROWS_WITH(read_image_header({"/dev/null"}), contains_text("neither a file nor a block device"));
  CHECK_THROWS_WITH(read_image_header({scratch.file("none")}), contains_text("cannot be opened"));
  CHECK_THROWS_WITH(discard_image({scratch.file("none")}, {}), contains_text("cannot be opened"));
  // An empty file holds nothing that could be lost.
  scratch.write("empty.img", "");
  CHECK(stage_image(spec, options_for({scratch.file("empty.img")})).written > 0);
}

TEST_CASE("an image of other settings is not overwritten, and the difference named", "[image_guards]") {
  const Scratch scratch;
  const TableSpec spec = small_engram(scratch, 500), other = small_engram(scratch, 500, "other");
  StageOptions options = options_for({scratch.file("a.img")});
  options.ranks = 4;
  stage_image(spec, options);
  const auto refuses = [&](const TableSpec& table, const StageOptions& changed, const std::string& part) {
    CHECK_THROWS_WITH(stage_image(table, changed), contains_text(part) && contains_text("discard it first"));
  };
  refuses(other, options, "table is small, not other");
  StageOptions changed = options;
  changed.seed = 2;
  refuses(spec, changed, "origin is generated seed=1, not generated seed=2");
  changed = options;
  changed.ranks = 5;
  refuses(spec, changed, "number of ranks is 4, not 5");
  changed = options;
  changed.shard_map = ShardMap::striped;
  refuses(spec, changed, "shard map is contiguous, not striped");
  changed = options;
  changed.page_bytes = 8192;
  refuses(spec, changed, "page size is 4096, not 8192");
  changed = options;
  changed.layers = {14};
  refuses(spec, changed, "number of segments is 8, not 4");
  changed = options;
  changed.max_bytes = 2 << 20;
  refuses(spec, changed, "layer 1 rank 0 has");
  CHECK(verify_image(spec, options.disks, 0, {}).bad == 0);
}

TEST_CASE("a run learns that an image is not the one it needs", "[image_guards]") {
  const Scratch scratch;
  const TableSpec spec = small_engram(scratch, 500), other = small_engram(scratch, 500, "other");
  StageOptions options = options_for({scratch.file("a.img"), scratch.file("b.img")});
  options.ranks = 4;
  options.only_ranks = {3};
  stage_image(spec, options);
  StageOptions second = options_for({scratch.file("c.img"), scratch.file("d.img")});
  second.ranks = 4;
  second.only_ranks = {3};
  stage_image(spec, second);

  CHECK_THROWS_WITH(open_image(options.disks, other), contains_text("holds table small") && contains_text("not other"));
  const ImageHeader header = open_image(options.disks, spec);
  const auto ours = generated_table(spec, 1);
  CHECK_NOTHROW(require_image(header, ShardMap::contiguous, 4, *ours));
  CHECK_THROWS_WITH(require_image(header, ShardMap::contiguous, 4, *generated_table(spec, 2)),
                    contains_text("seed=1") && contains_text("seed=2"));
  CHECK_THROWS_WITH(require_image(header, ShardMap::striped, 4, *ours), contains_text("striped shards of 4"));
  CHECK_THROWS_WITH(require_image(header, ShardMap::contiguous, 8, *ours), contains_text("shards of 8"));
  CHECK_THROWS_WITH(header.segment(1, 2),
                    contains_text("no layer 1 rank 2") && contains_text("layer 1 rank 3, layer 14 rank 3"));

  CHECK_THROWS_WITH(open_image({scratch.file("a.img")}, spec), contains_text("on 2 disks, 1 are named"));
  CHECK_THROWS_WITH(open_image({scratch.file("a.img"), scratch.file("a.img")}, spec), contains_text("is disk 0"));
  CHECK_THROWS_WITH(open_image({scratch.file("a.img"), scratch.file("d.img")}, spec), contains_text("another staging"));
  std::filesystem::resize_file(scratch.file("b.img"), header.disk_bytes() - 4096);
  CHECK_THROWS_WITH(open_image(options.disks, spec), contains_text("b.img: is truncated"));
  stage_image(spec, options);  // mends it
  CHECK(verify_image(spec, options.disks, 0, {}).bad == 0);
}

TEST_CASE("a header survives the loss of one slot, and damage is told from absence", "[image_guards]") {
  const Scratch scratch;
  const TableSpec spec = small_engram(scratch, 500);
  const StageOptions options = options_for({scratch.file("a.img")});
  stage_image(spec, options);
  // Two headers were written: incomplete, then complete. Whichever is damaged, the other one is read.
  const ImageHeader header = read_image_header(options.disks);
  CHECK(header.complete);
  int complete = 0;
  for (const std::uint64_t slot : {0, 512 << 10}) {
    scratch.damage("a.img", slot + 40);
    complete += read_image_header(options.disks).complete;
    scratch.damage("a.img", slot + 40);
  }
  CHECK(complete == 1);
  scratch.damage("a.img", 40);
  scratch.damage("a.img", (512 << 10) + 40);
  CHECK_THROWS_WITH(read_image_header(options.disks), contains_text("header is damaged"));
  CHECK_THROWS_WITH(stage_image(spec, options), contains_text("discard it first"));
  discard_image(options.disks, {});
  CHECK_FALSE(std::filesystem::exists(options.disks[0]));
}

TEST_CASE("two stagings of one file at a time are refused", "[image_guards]") {
  const Scratch scratch;
  const TableSpec spec = small_engram(scratch, 100'000);
  StageOptions options = options_for({scratch.file("a.img")});
  options.max_bytes = 20 << 20;
  bool refused = false;
  StageOptions second = options;
  options.progress = [&](std::uint64_t, std::uint64_t) {
    if (refused) return;
    CHECK_THROWS_WITH(stage_image(spec, second), contains_text("another process"));
    CHECK_THROWS_WITH(discard_image(second.disks, {}), contains_text("another process"));
    refused = true;
  };
  stage_image(spec, options);
  CHECK(refused);
}

// Holes and unwritten extents are found where the file system tells of extents at all.
#include "platforms/extents.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <random>
#include <system_error>
#include <vector>

#include "tests/catch.hpp"
#include "tests/unit/platforms/proc_tree.hpp"

using namespace slacktier;

namespace {

constexpr std::uint64_t mib = 1 << 20;

// A file beside the test's working directory, which lies on the disk that is built on.
class File {
 public:
  File() {
    name_ = (std::filesystem::current_path() / "slacktier-test-XXXXXX").string();
    descriptor_ = ::mkstemp(name_.data());
    REQUIRE(descriptor_ >= 0);
  }
  ~File() {
    ::close(descriptor_);
    ::unlink(name_.c_str());
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  void write(std::uint64_t at, std::uint64_t bytes) const {
    std::mt19937_64 random(at);
    std::vector<std::uint64_t> words(bytes / 8);
    for (auto& word : words) word = random();
    REQUIRE(::pwrite(descriptor_, words.data(), bytes, static_cast<off_t>(at)) == static_cast<ssize_t>(bytes));
  }
  int descriptor() const { return descriptor_; }
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  int descriptor_ = -1;
};

}  // namespace

TEST_CASE("A file that was written has neither holes nor unwritten bytes", "[extents]") {
  const File file;
  file.write(0, 3 * mib);
  const auto extents = read_extents(file.name());
  if (!extents) return skip_test("the file system here does not tell of extents");
  CHECK(extents->bytes == 3 * mib);
  CHECK(extents->extents >= 1);
  CHECK(extents->holes == 0);
  CHECK(extents->unwritten == 0);
}

TEST_CASE("Holes in the middle and at the end, and what was only reserved", "[extents]") {
  const File file;
  if (!read_extents(file.name())) return skip_test("the file system here does not tell of extents");
  file.write(0, mib);
  file.write(3 * mib, mib);
  REQUIRE(::ftruncate(file.descriptor(), 8 * mib) == 0);
  const auto holes = read_extents(file.name());
  REQUIRE(holes);
  CHECK(holes->bytes == 8 * mib);
  CHECK(holes->holes == 6 * mib);
  CHECK(holes->unwritten == 0);
  const auto behind = read_extents(file.name(), 2 * mib);
  REQUIRE(behind);
  CHECK(behind->bytes == 6 * mib);
  CHECK(behind->holes == 5 * mib);
  CHECK(read_extents(file.name(), 9 * mib).value_or(FileExtents{1, 1, 1, 1, 1}).bytes == 0);
  if (::posix_fallocate(file.descriptor(), 4 * mib, 2 * mib) != 0) return skip_test("the file system cannot reserve");
  const auto reserved = read_extents(file.name());
  REQUIRE(reserved);
  // Some file systems reserve by writing zeros.
  CHECK(reserved->holes == 4 * mib);
  CHECK((reserved->unwritten == 2 * mib || reserved->unwritten == 0));
}

TEST_CASE("More pieces than are asked for at once", "[extents]") {
  const File file;
  if (!read_extents(file.name())) return skip_test("the file system here does not tell of extents");
  constexpr std::uint64_t pieces = 1500;
  for (std::uint64_t i = 0; i < pieces; ++i) file.write(i * 65536, 4096);
  const auto extents = read_extents(file.name());
  REQUIRE(extents);
  CHECK(extents->extents >= pieces);
  CHECK(extents->bytes - extents->holes == pieces * 4096);
}

TEST_CASE("Folders have no extents, and a file that is not there is named", "[extents]") {
  const slacktier::test::ProcTree tree;
  CHECK_FALSE(read_extents(tree.root()));
  try {
    read_extents(tree.root() + "/none");
    FAIL("read");
  } catch (const std::system_error& error) {
    CHECK(error.code().value() == ENOENT);
    CHECK_THAT(error.what(), contains_text(tree.root() + "/none"));
  }
}

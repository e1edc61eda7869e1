#include "platforms/mapped_copy.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>
#include <vector>

#include "tests/catch.hpp"

using namespace slacktier;

namespace {

constexpr std::size_t page = 4096;

// A file of `pages` pages of their own numbers, mapped.
class Mapped {
 public:
  explicit Mapped(std::size_t pages) : bytes_(pages * page) {
    std::string name = (std::filesystem::temp_directory_path() / "slacktier-test-XXXXXX").string();
    descriptor_ = ::mkstemp(name.data());
    REQUIRE(descriptor_ >= 0);
    ::unlink(name.c_str());
    for (std::size_t p = 0; p < pages; ++p) {
      const std::vector<char> content(page, static_cast<char>(p));
      REQUIRE(::write(descriptor_, content.data(), page) == static_cast<ssize_t>(page));
    }
    void* at = ::mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, descriptor_, 0);
    REQUIRE(at != MAP_FAILED);
    data_ = static_cast<const char*>(at);
  }
  ~Mapped() {
    ::munmap(const_cast<char*>(data_), bytes_);
    ::close(descriptor_);
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  void cut(std::size_t pages) const { REQUIRE(::ftruncate(descriptor_, static_cast<off_t>(pages * page)) == 0); }
  const char* at(std::size_t number) const { return data_ + number * page; }

 private:
  std::size_t bytes_;
  int descriptor_ = -1;
  const char* data_ = nullptr;
};

}  // namespace

TEST_CASE("What the file has is copied; what was cut off is refused, again and again", "[mapped_copy]") {
  const Mapped file(8);
  std::vector<char> to(page);
  REQUIRE(copy_from_mapping(to.data(), file.at(5), page));
  CHECK(to == std::vector<char>(page, 5));
  file.cut(4);
  for (int i = 0; i < 3; ++i) {
    CHECK_FALSE(copy_from_mapping(to.data(), file.at(5), page));
    REQUIRE(copy_from_mapping(to.data(), file.at(3), page));
    CHECK(to == std::vector<char>(page, 3));
  }
}

TEST_CASE("Threads that meet lost pages at the same time do not disturb each other", "[mapped_copy]") {
  const Mapped file(64);
  file.cut(32);
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::vector<char> to(page);
      for (std::size_t i = 0; i < 2000; ++i) {
        const std::size_t p = i * 7 % 64;
        const bool copied = copy_from_mapping(to.data(), file.at(p), page);
        if (copied != (p < 32) || (copied && to[17] != static_cast<char>(p))) ++wrong[static_cast<std::size_t>(t)];
      }
    });
  for (auto& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>(4, 0));
}

TEST_CASE("A fault outside of a copy still ends the process", "[mapped_copy]") {
  const Mapped file(2);
  std::vector<char> to(page);
  REQUIRE(copy_from_mapping(to.data(), file.at(1), page));
  file.cut(1);
  CHECK_FALSE(copy_from_mapping(to.data(), file.at(1), page));
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const char lost = *static_cast<const volatile char*>(file.at(1));
    std::_Exit(lost * 0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  // By the signal, or as a sanitizer's handler of it ends the process.
  CHECK_FALSE((WIFEXITED(status) && WEXITSTATUS(status) == 0));
}

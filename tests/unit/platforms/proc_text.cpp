#include "platforms/proc_text.hpp"

#include "tests/catch.hpp"

using namespace slacktier;

TEST_CASE("Fields are found by their whole key", "[proc_text]") {
  constexpr const char* text = "MemTotalExtra: 1\nMemTotal  :\t 2 kB \nEmpty:\nMemTotal: 3";
  CHECK(text_field(text, "MemTotal") == "2 kB");
  CHECK(text_field(text, "Empty") == "");
  CHECK_FALSE(text_field(text, "Mem"));
  CHECK_FALSE(text_field("", "MemTotal"));
}

TEST_CASE("Numbers are read strictly", "[proc_text]") {
  CHECK(leading_number(" 12 kB") == 12);
  CHECK(leading_number("18446744073709551615") == UINT64_MAX);
  CHECK_FALSE(leading_number("18446744073709551616"));
  CHECK_FALSE(leading_number("-1"));
  CHECK_FALSE(leading_number("max"));
  CHECK_FALSE(leading_number(""));
}

TEST_CASE("Lists of CPUs are counted", "[proc_text]") {
  CHECK(list_size("0") == 1);
  CHECK(list_size("0-3,8,10-11\n") == 7);
  for (const char* wrong : {"", "a", "3-1", "1,,2", "1-", "-1"}) CHECK_FALSE(list_size(wrong));
}

TEST_CASE("Lists of CPUs are read", "[proc_text]") {
  CHECK(list_numbers("0-2,8\n") == std::vector<std::uint64_t>{0, 1, 2, 8});
  for (const char* wrong : {"", "3-1", "0-18446744073709551614"}) CHECK_FALSE(list_numbers(wrong));
}

TEST_CASE("Files that are not there are nothing", "[proc_text]") {
  CHECK_FALSE(read_text("/nonexistent/file"));
  CHECK_FALSE(read_line("/nonexistent/file"));
  CHECK(read_text("/proc/self/status"));
}

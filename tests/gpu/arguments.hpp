// Arguments of the test kernels; addresses are the device's.
#pragma once

#include <cstdint>

namespace slacktier::test {

struct Add {
  std::int64_t* to;
  const std::int64_t* from;
  std::int64_t constant;
};
// to = to * 31 + from: the order of such operations shows in the result.
struct Mix {
  std::int64_t* to;
  const std::int64_t* from;
};
struct ReadStatus {
  const std::uint32_t* status;
  std::int64_t* to;
};
struct SumWords {
  std::int64_t words[200];  // 1,600 bytes of arguments
  std::int64_t* to;
};

}  // namespace slacktier::test

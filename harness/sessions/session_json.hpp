// One line of a session file to a Session.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "harness/sessions.hpp"

namespace slacktier {

// Parses session lines; keeps its buffers between them.
class SessionParser {
 public:
  explicit SessionParser(std::uint32_t raw_vocabulary);
  ~SessionParser();
  // Empty on success, else what is wrong: the field, or the byte where the JSON breaks.
  std::string parse(std::string_view line, Session& session);

 private:
  struct Events;
  std::unique_ptr<Events> events_;
};

}  // namespace slacktier

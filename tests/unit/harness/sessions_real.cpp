// The real session files, read in full.
#include <map>

#include "harness/sessions.hpp"
#include "tests/catch.hpp"
#include "tests/real_sessions.hpp"

using namespace slacktier;

TEST_CASE("real session files hold what their notes say", "[sessions_real]") {
  struct Expected {
    const char* file;
    std::size_t sessions, skipped, assistant_tokens, other_tokens;
  };
  for (const Expected& expected : {Expected{"agent.tokens.jsonl.zst", 235, 0, 1741643, 2569933},
                                   Expected{"chat.tokens.jsonl.zst", 1694, 0, 500143, 104261}}) {
    const std::string path = real_session_file(expected.file);
    if (path.empty())
      return skip_test(std::string(expected.file) + " is not there; set SLACKTIER_SESSIONS to its directory");
    SessionOptions options;
    options.raw_vocabulary = 129280;
    options.strict = true;
    const auto source = open_sessions({path}, options);
    std::size_t sessions = 0, assistant = 0, other = 0;
    Session session;
    while (source->next(session)) {
      ++sessions;
      for (const Turn& turn : session.turns) (turn.role == Role::assistant ? assistant : other) += turn.ids.size();
    }
    CHECK(sessions == expected.sessions);
    CHECK(assistant == expected.assistant_tokens);
    CHECK(other == expected.other_tokens);
    CHECK(source->describe() == path + ": " + std::to_string(sessions) + " sessions read");
  }
}

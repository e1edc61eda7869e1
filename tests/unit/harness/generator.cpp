// Generated sessions: determinism, shape, errors.
#include "harness/generator.hpp"

#include <cstdint>

#include "platforms/error.hpp"
#include "tests/catch.hpp"

using namespace slacktier;

namespace {

std::uint64_t fingerprint(SessionSource& source, std::size_t sessions) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  Session session;
  auto add = [&](std::uint64_t value) { hash = (hash ^ value) * 0x100000001b3u; };
  for (std::size_t i = 0; i < sessions; ++i) {
    source.next(session);
    for (const char c : session.id + session.group) add(static_cast<unsigned char>(c));
    for (const Turn& turn : session.turns) {
      add(static_cast<std::uint64_t>(turn.role) + 1000);
      for (const std::uint32_t id : turn.ids) add(id);
    }
  }
  return hash;
}

}  // namespace

TEST_CASE("a kind and a seed give one stream", "[generator]") {
  for (const std::string& kind : generated_kinds()) {
    const auto a = generated_sessions(kind, 7), b = generated_sessions(kind, 7), c = generated_sessions(kind, 8);
    // A session object that is used again, or was used elsewhere, changes nothing.
    const std::uint64_t first = fingerprint(*a, 40);
    CHECK(first == fingerprint(*b, 40));
    CHECK(first != fingerprint(*c, 40));
    CHECK(fingerprint(*a, 40) == fingerprint(*b, 40));
    CHECK(a->describe() == "generated " + kind + " sessions, seed 7: 80 handed out");
    CHECK(a->generated());
    CHECK_FALSE(a->hash_ids());
  }
}

TEST_CASE("generated sessions have the shape of real ones", "[generator]") {
  for (const std::string& kind : generated_kinds()) {
    const auto source = generated_sessions(kind, 3);
    Session session;
    std::size_t bad = 0, written = 0, read = 0;
    for (int i = 0; i < 300; ++i) {
      REQUIRE(source->next(session));
      REQUIRE(session.turns.size() >= 2);
      CHECK(session.turns.front().role != Role::assistant);
      CHECK(session.turns.back().role == Role::assistant);
      for (std::size_t t = 0; t < session.turns.size(); ++t) {
        const Turn& turn = session.turns[t];
        bad += turn.ids.empty() || (t > 0 && turn.role == Role::assistant && session.turns[t - 1].role == Role::assistant);
        for (const std::uint32_t id : turn.ids) bad += id < 3 || id >= 128'000;
        (turn.role == Role::assistant ? written : read) += turn.ids.size();
      }
    }
    CHECK(bad == 0);
    // Prefill: 60% of the tokens of the agents measured, 17% of the chats'.
    const double share = static_cast<double>(read) / static_cast<double>(read + written);
    CHECK(share == (kind.ends_with("agent") ? Approx(0.60).margin(0.06) : Approx(0.17).margin(0.04)));
  }
}

TEST_CASE("an unknown kind is refused with those there are", "[generator]") {
  try {
    generated_sessions("novel", 1);
    FAIL("no error");
  } catch (const UsageError& error) {
    CHECK(std::string(error.what()) == "no generated sessions of kind 'novel': use agent, chat, paper-agent, paper-chat");
  }
}

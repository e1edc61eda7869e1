#include "harness/interleave.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#include "platforms/error.hpp"
#include "tests/catch.hpp"

using namespace slacktier;

namespace {

constexpr std::uint32_t pad = 999999;

TableSpec small_spec(int max_ngram = 4) {
  TableSpec spec;
  spec.name = "small";
  spec.max_ngram = max_ngram;
  spec.vocabulary = spec.raw_vocabulary = 1000000;
  spec.pad = pad;
  return spec;
}

// Ids tell session and position apart: session * 1000 + position.
Session numbered(std::uint32_t session, const std::vector<std::pair<Role, int>>& turns) {
  Session out;
  out.id = "session " + std::to_string(session);
  std::uint32_t id = session * 1000;
  for (const auto& [role, tokens] : turns) {
    out.turns.push_back({role, {}});
    for (int i = 0; i < tokens; ++i) out.turns.back().ids.push_back(id++);
  }
  return out;
}

std::vector<Session> random_sessions(std::uint32_t count, unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](unsigned n) { return static_cast<int>(random() % n); };
  std::vector<Session> sessions;
  for (std::uint32_t s = 0; s < count; ++s) {
    std::vector<std::pair<Role, int>> turns;
    const int n = 1 + below(6);
    for (int t = 0; t < n; ++t) turns.push_back({static_cast<Role>(below(4)), below(12)});
    turns.insert(turns.begin() + below(static_cast<unsigned>(turns.size()) + 1), {Role::assistant, 1 + below(9)});
    sessions.push_back(numbered(s, turns));
  }
  return sessions;
}

using Ids = std::vector<std::uint32_t>;

// What the turns say a session's tokens are: context and whether they are decoded, up to the last assistant token.
struct Expected {
  Ids context;
  bool decode;
  bool turn_ends;  // the last token of an assistant turn
};
std::vector<Expected> expected_tokens(const Session& session, int max_ngram) {
  std::vector<Expected> out;
  Ids before;
  std::size_t last = 0;
  for (const Turn& turn : session.turns) {
    for (std::size_t i = 0; i < turn.ids.size(); ++i) {
      before.insert(before.begin(), turn.ids[i]);
      Ids context = before;
      context.resize(static_cast<std::size_t>(max_ngram), pad);
      out.push_back({context, turn.role == Role::assistant, i + 1 == turn.ids.size()});
      if (turn.role == Role::assistant) last = out.size();
    }
  }
  out.resize(last);
  return out;
}

Ids context_at(std::span<const std::uint32_t> contexts, std::size_t token, int max_ngram) {
  const auto n = static_cast<std::size_t>(max_ngram);
  const auto part = contexts.subspan(token * n, n);
  return {part.begin(), part.end()};
}

bool equal(const StepView& a, const StepView& b) {
  const auto same = [](const Prefill& x, const Prefill& y) {
    return x.slot == y.slot && x.session == y.session && x.first == y.first && x.tokens == y.tokens;
  };
  return std::ranges::equal(a.context, b.context) && std::ranges::equal(a.active, b.active) &&
         std::ranges::equal(a.prefills, b.prefills, same) && std::ranges::equal(a.prefill_context, b.prefill_context) &&
         a.decode_tokens == b.decode_tokens && a.prefill_tokens == b.prefill_tokens;
}

}  // namespace

TEST_CASE("two sessions side by side, step by step", "[interleave]") {
  const TableSpec spec = small_spec(2);
  const TokenMap map;
  const auto source =
      listed_sessions({numbered(1, {{Role::system, 1},
                                    {Role::user, 1},
                                    {Role::assistant, 2},
                                    {Role::tool, 1},
                                    {Role::assistant, 1},
                                    {Role::user, 5}}),
                       numbered(2, {{Role::assistant, 5}}), numbered(3, {{Role::user, 2}, {Role::assistant, 9}})},
                      "list");
  InterleaveOptions options;
  options.sessions = 2;
  Interleaver interleaver(*source, spec, map, options);
  struct Row {
    Ids decoded, prefilled;
    std::uint64_t prefilled_session;
  };
  const Row rows[] = {
      {{1002, 1001, 2000, pad}, {1000, pad, 1001, 1000}, 0},
      {{1003, 1002, 2001, 2000}, {}, 0},
      {{1005, 1004, 2002, 2001}, {1004, 1003}, 0},
      {{3002, 3001, 2003, 2002}, {3000, pad, 3001, 3000}, 2},  // the user turn that nothing answers is left out
      {{3003, 3002, 2004, 2003}, {}, 0},
  };
  StepTokens step;
  for (const Row& row : rows) {
    interleaver.next(step);
    CHECK(step.context == row.decoded);
    CHECK(step.active == std::vector<std::uint8_t>{1, 1});
    CHECK(step.prefill_context == row.prefilled);
    CHECK(step.decode_tokens == 2);
    CHECK(step.prefill_tokens == row.prefilled.size() / 2);
    REQUIRE(step.prefills.size() == (row.prefilled.empty() ? 0 : 1));
    if (!row.prefilled.empty()) {
      CHECK(step.prefills[0].slot == 0);
      CHECK(step.prefills[0].session == row.prefilled_session);
      CHECK(step.prefills[0].tokens == row.prefilled.size() / 2);
      const auto context = step.view().context_of(step.prefills[0], 2);
      CHECK(Ids(context.begin(), context.end()) == row.prefilled);
    }
  }
  CHECK(interleaver.sessions_started() == 3);
  CHECK_THROWS_AS(interleaver.next(step), UsageError);
}

TEST_CASE("every token of every session appears once, in order, in one slot, with its context", "[interleave]") {
  for (const std::uint32_t q : {1u, 2u, 5u}) {
    for (const std::uint32_t concurrent : {1u, 3u, 16u}) {
      const int n = q == 2 ? 3 : 4;
      const TableSpec spec = small_spec(n);
      const TokenMap map;
      const std::vector<Session> sessions = random_sessions(200, q * 100 + concurrent);
      std::vector<std::vector<Expected>> expected;
      for (const Session& s : sessions) expected.push_back(expected_tokens(s, n));
      const auto source = listed_sessions(sessions, "list");
      InterleaveOptions options;
      options.sessions = concurrent;
      options.q = q;
      Interleaver interleaver(*source, spec, map, options);

      std::vector<std::size_t> seen(sessions.size(), 0);       // tokens of each session so far
      std::vector<std::int64_t> slot_of(sessions.size(), -1);  // where each session runs
      std::vector<std::size_t> in_slot(concurrent, SIZE_MAX);  // which session each slot runs
      std::size_t failures = 0, partial_steps = 0;
      const auto take = [&](const Ids& context, std::size_t slot, bool decode) {
        const std::size_t session = context[0] / 1000;
        if (in_slot[slot] != session) {  // a new session: it never ran, and the one before it is complete
          failures += slot_of[session] != -1;
          if (in_slot[slot] != SIZE_MAX) failures += seen[in_slot[slot]] != expected[in_slot[slot]].size();
          slot_of[session] = static_cast<std::int64_t>(slot);
          in_slot[slot] = session;
        }
        failures += slot_of[session] != static_cast<std::int64_t>(slot);
        const Expected& want = expected[session].at(seen[session]++);
        failures += want.context != context || want.decode != decode;
        return want.turn_ends;
      };
      StepTokens step;
      std::uint64_t steps = 0;
      try {
        for (;; ++steps) {
          interleaver.next(step);
          std::uint64_t prefilled = 0, decoded = 0;
          std::uint32_t last_slot = 0;
          for (const Prefill& prefill : step.prefills) {
            failures += prefill.tokens == 0 || prefill.first != prefilled || (prefilled > 0 && prefill.slot <= last_slot);
            last_slot = prefill.slot;
            for (std::size_t t = 0; t < prefill.tokens; ++t) {
              const Ids context = context_at(step.prefill_context, prefill.first + t, n);
              failures += context[0] / 1000 != prefill.session;  // sessions start in the order of the source
              take(context, prefill.slot, false);
            }
            prefilled += prefill.tokens;
          }
          for (std::uint32_t b = 0; b < concurrent; ++b) {
            bool turn_ended = false, padding = false;
            for (std::uint32_t i = 0; i < q; ++i) {
              const Ids context = context_at(step.context, std::size_t{b} * q + i, n);
              if (step.active[std::size_t{b} * q + i]) {
                failures += padding || turn_ended;  // tokens first, then padding; a step never spans two turns
                turn_ended = take(context, b, true);
                ++decoded;
              } else {
                padding = true;
                failures += i == 0 || !turn_ended;  // every slot decodes; padding only behind a turn's last token
                failures += context != Ids(static_cast<std::size_t>(n), 0);
              }
            }
            partial_steps += padding;
          }
          failures += decoded != step.decode_tokens || prefilled != step.prefill_tokens;
        }
      } catch (const UsageError&) {
        CHECK(interleaver.sessions_started() == sessions.size());
      }
      INFO("q " << q << ", " << concurrent << " sessions, " << steps << " steps");
      CHECK(failures == 0);
      CHECK((partial_steps > 0) == (q > 1));
      std::size_t complete = 0;
      for (std::size_t s = 0; s < sessions.size(); ++s) complete += seen[s] == expected[s].size();
      CHECK(complete >= sessions.size() - concurrent);
    }
  }
}

TEST_CASE("equal sources give equal steps, and a trace replays them", "[interleave]") {
  const TableSpec spec = small_spec();
  const TokenMap map;
  InterleaveOptions options;
  options.sessions = 8;
  options.q = 2;
  const std::vector<Session> sessions = random_sessions(300, 7);
  const auto first = listed_sessions(sessions, "list"), second = listed_sessions(sessions, "list");
  Interleaver recorded(*first, spec, map, options), live(*second, spec, map, options);
  const StepTrace trace = StepTrace::record(recorded, 100);
  REQUIRE(trace.steps() == 100);
  StepTokens step;
  std::uint64_t decode = 0, prefill = 0, largest = 0, differing = 0;
  for (std::uint64_t i = 0; i < trace.steps(); ++i) {
    live.next(step);
    differing += !equal(trace.step(i), step.view());
    decode += step.decode_tokens;
    prefill += step.prefill_tokens;
    largest = std::max(largest, step.prefill_tokens);
  }
  CHECK(differing == 0);
  CHECK(equal(trace.step(17), trace.step(17)));
  CHECK_FALSE(equal(trace.step(17), trace.step(18)));
  CHECK(trace.decode_tokens() == decode);
  CHECK(trace.prefill_tokens() == prefill);
  CHECK(trace.max_prefill_tokens() == largest);
  CHECK(trace.sessions_started() == live.sessions_started());
  CHECK(trace.sessions() == 8);
  CHECK(trace.q() == 2);
  CHECK(trace.bytes() >= (100 * 16 + prefill) * 16 + 100 * 16);
  CHECK(trace.bytes() <= (100 * 16 + prefill) * 16 + 100 * 16 + 100 * 96 + 300 * 6 * 32);
  CHECK(trace.describe() == "list; " + std::to_string(trace.sessions_started()) + " sessions used");

  const auto third = listed_sessions(sessions, "list");
  Interleaver again(*third, spec, map, options);
  CHECK_THROWS_AS(StepTrace::record(again, 100, 20000), UsageError);
}

TEST_CASE("steps without new prefills reuse their memory", "[interleave]") {
  const TableSpec spec = small_spec();
  const TokenMap map;
  const auto source = listed_sessions({numbered(1, {{Role::user, 3}, {Role::assistant, 500}})}, "list");
  InterleaveOptions options;
  options.sessions = 1;
  Interleaver interleaver(*source, spec, map, options);
  StepTokens step;
  interleaver.next(step);
  const void* memory[] = {step.context.data(), step.active.data(), step.prefills.data(), step.prefill_context.data()};
  for (int i = 1; i < 500; ++i) interleaver.next(step);
  const void* after[] = {step.context.data(), step.active.data(), step.prefills.data(), step.prefill_context.data()};
  CHECK(std::ranges::equal(memory, after));
}

TEST_CASE("too few sessions: the message says how many are needed", "[interleave]") {
  const TableSpec spec = small_spec();
  const TokenMap map;
  std::vector<Session> sessions;
  for (std::uint32_t s = 0; s < 40; ++s) sessions.push_back(numbered(s, {{Role::user, 2}, {Role::assistant, 10}}));
  const auto error_of = [&](std::uint32_t concurrent, std::uint64_t steps) -> std::string {
    const auto source = listed_sessions(sessions, "list");
    InterleaveOptions options;
    options.sessions = concurrent;
    options.steps = steps;
    Interleaver interleaver(*source, spec, map, options);
    try {
      StepTrace::record(interleaver, steps);
    } catch (const UsageError& e) {
      return e.what();
    }
    return "no error";
  };
  CHECK(error_of(4, 100) == "no error");  // exactly enough
  // All sessions take 10 steps, so 4 slots need 4 * (1000 / 10 + 1/2) by the estimate (400 in truth).
  const std::string error = error_of(4, 1000);
  INFO(error);
  CHECK(error.rfind("list: the sessions end in step 101 of 1000 with 4 at a time (q = 1, 40 sessions); about 402 are needed",
                    0) == 0);
  CHECK(error_of(41, 1).find("about 41 are needed") != std::string::npos);
}

TEST_CASE("a top-up source is used only when the source has ended, and is labelled", "[interleave]") {
  struct Generated : SessionSource {
    std::uint32_t count = 0;
    bool next(Session& session) override {
      session = numbered(500 + count++, {{Role::user, 1}, {Role::assistant, 4}});
      return true;
    }
    std::string describe() const override { return "generator (chat)"; }
    bool hash_ids() const override { return true; }
    bool generated() const override { return true; }
  };
  const TableSpec spec = small_spec();
  const TokenMap map;
  const auto source = listed_sessions({numbered(0, {{Role::assistant, 6}}), numbered(1, {{Role::assistant, 2}})}, "list");
  Generated generated;
  InterleaveOptions options;
  options.sessions = 2;
  options.top_up = &generated;
  Interleaver interleaver(*source, spec, map, options);
  StepTokens step;
  for (int i = 0; i < 6; ++i) interleaver.next(step);
  CHECK(interleaver.sessions_started() == 3);
  CHECK(interleaver.sessions_topped_up() == 1);
  CHECK(step.context[0] == 5);
  CHECK(step.context[4] == 500 * 1000 + 4);
  CHECK(interleaver.describe() == "list; 2 sessions used, topped up by 1 generated sessions from generator (chat)");
}

TEST_CASE("token maps are applied to raw ids, and ids outside the vocabulary are refused", "[interleave]") {
  std::string name = (std::filesystem::temp_directory_path() / "slacktier_map_XXXXXX").string();
  const int fd = ::mkstemp(name.data());
  REQUIRE(fd >= 0);
  ::close(fd);
  TableSpec spec = small_spec(2);
  spec.raw_vocabulary = 5;
  spec.vocabulary = 3;
  spec.pad = 1;
  {
    std::ofstream out(name, std::ios::binary);
    for (const char id : {'\0', '\1', '\2', '\1', '\0'}) out.put(id).put(0).put(0).put(0);
  }
  const TokenMap map = TokenMap::load(name, spec);
  std::filesystem::remove(name);
  InterleaveOptions options;
  options.sessions = 1;
  const auto decode = [&](const Ids& ids, bool hash_ids, const TokenMap& used_map) {
    Session session;
    session.id = "s";
    session.turns = {{Role::assistant, ids}};
    const auto source = listed_sessions({session}, "list", hash_ids);
    Interleaver interleaver(*source, spec, used_map, options);
    StepTokens step;
    Ids current;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      interleaver.next(step);
      current.push_back(step.context[0]);
    }
    return current;
  };
  CHECK(decode({0, 1, 2, 3, 4}, false, map) == Ids{0, 1, 2, 1, 0});
  CHECK(decode({0, 1, 2}, true, map) == Ids{0, 1, 2});
  CHECK(decode({0, 1, 2}, true, TokenMap()) == Ids{0, 1, 2});
  CHECK_THROWS_WITH(decode({0, 5}, false, map),
                    "list: session \"s\", turns[0]: token id 5 is not below 5, the vocabulary of table small");
  CHECK_THROWS_AS(decode({0, 3}, true, map), UsageError);
  CHECK_THROWS_AS(decode({0}, false, TokenMap()), UsageError);  // raw ids of a compressed vocabulary need the map

  // Generated ids mean no text, so they do without a map.
  struct Generated : SessionSource {
    bool next(Session& session) override {
      session.turns = {{Role::assistant, {0, 1, 2, 3, 4}}};
      return true;
    }
    std::string describe() const override { return "generator"; }
    bool generated() const override { return true; }
  } generated;
  for (const bool with_map : {true, false}) {
    const TokenMap none;
    Interleaver interleaver(generated, spec, with_map ? map : none, options);
    StepTokens step;
    Ids current;
    for (int i = 0; i < 5; ++i) {
      interleaver.next(step);
      current.push_back(step.context[0]);
    }
    CHECK(current == (with_map ? Ids{0, 1, 2, 1, 0} : Ids{0, 1, 2, 0, 1}));
    CHECK((interleaver.describe().find("folded to 3 (no token map)") == std::string::npos) == with_map);
  }
}

TEST_CASE("nothing side by side is refused", "[interleave]") {
  const TableSpec spec = small_spec();
  const TokenMap map;
  const auto source = listed_sessions({numbered(0, {{Role::assistant, 6}})}, "list");
  InterleaveOptions options;
  options.sessions = 0;
  CHECK_THROWS_AS(Interleaver(*source, spec, map, options), UsageError);
  options.sessions = 1;
  options.q = 0;
  CHECK_THROWS_AS(Interleaver(*source, spec, map, options), UsageError);
}

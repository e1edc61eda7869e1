// The token process of generated sessions: spans copied from the session's past, idioms, documents and fresh tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "harness/generator/profile.hpp"

namespace slacktier::generator {

inline std::uint64_t scramble(std::uint64_t x) {
  x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93u;
  x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93u;
  return x ^ (x >> 32);
}

// xorshift128+: equal on every platform, which std:: distributions are not.
class Random {
 public:
  explicit Random(std::uint64_t seed);
  std::uint64_t bits();
  double uniform() { return (static_cast<double>(bits() >> 11) + 0.5) * 0x1p-53; }  // in (0, 1)
  double normal();

 private:
  std::uint64_t a_, b_;
};

class TokenProcess {
 public:
  TokenProcess(const Profile& profile, std::uint64_t seed);

  // Forgets the session's past; `group` and `language` choose the idioms and documents from now on.
  void start_session(std::uint64_t group, std::uint32_t language);
  // Ends the span that runs: the next token begins another.
  void start_turn() { left_ = 0; }
  std::uint32_t next(const Style& style, const RoleStyle& role);
  // Token `position` of a fixed text that all sessions share, as the next token of this session.
  std::uint32_t quote(std::uint64_t text, std::uint64_t position);

 private:
  enum class Span { fresh, own, group_idiom, common_idiom, document };
  // Earlier places of a token or a pair of tokens in this session; of another session when the epoch differs.
  struct Places {
    std::uint32_t epoch = 0;
    std::vector<std::uint32_t> at;
  };

  void begin_span(const Style& style, const RoleStyle& role);
  bool begin_own(const Places& places, bool pair, const RoleStyle& role);
  void begin_own_at(std::size_t position, const RoleStyle& role);
  std::size_t distance_back(double recency);
  std::uint32_t idiom(std::uint64_t salt, const IdiomSpread& spread);
  std::uint32_t token(std::uint64_t bits) const;
  std::uint32_t append(std::uint32_t id);
  Places& pair_places(std::uint32_t first, std::uint32_t second);

  std::uint64_t salt_;
  Random random_;
  std::vector<std::uint32_t> rank_;  // 256 * rank at 2^16 equal steps of the cumulative frequency
  std::vector<std::uint32_t> past_;  // tokens of this session
  std::vector<Places> ones_, pairs_;
  std::uint32_t epoch_ = 0;
  std::uint64_t group_ = 0, common_ = 0;
  Span span_ = Span::fresh;
  double left_ = 0;         // tokens left of the span
  std::size_t source_ = 0;  // own: position copied next; idiom: tokens so far; document: position in it
  std::uint64_t document_ = 0;
};

}  // namespace slacktier::generator

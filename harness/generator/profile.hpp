// The numbers that make a kind of generated sessions, and where they come from.
//
// Measured on real sessions: shares of session classes and groups, quantiles of lengths, the cumulative frequency of tokens
// by rank, how many tokens most turns begin and end with. Fitted: everything in Style, to LRU hit rates of all those
// sessions (decode lookups of orders 2 to 4 at ten capacities from 10 k to 4 M rows under 64 sessions, agents under 128 too;
// prefill lookups with less weight; the share of n-grams never seen before), by an evolution strategy (CMA-ES), then damped
// least squares, then, for agents, a few parameters by hand. No group was held out, so that how well this holds for other
// sessions of these kinds is for a comparison with such sessions to say.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace slacktier::generator {

// Values at these cumulative probabilities; log-linear between them.
inline constexpr std::array<double, 15> kProbabilities = {0, .05, .1, .2, .3, .4, .5, .6, .7, .8, .9, .95, .98, .995, 1};
using Quantiles = std::array<double, 15>;

// How the tokens of a role come about: again and again a span begins, of one of these origins, and runs for some tokens.
struct RoleStyle {
  // Weights of the origins of a span.
  double fresh = 0;           // one token drawn by frequency alone
  double own_after_one = 0;   // copies the session's own past from behind an occurrence of the current token
  double own_after_two = 0;   // the same, behind an occurrence of the last two tokens
  double own_anywhere = 0;    // the same, from a place that has nothing to do with the current token
  double group_idiom = 0;     // continues as sessions of this group usually do (see Style)
  double common_idiom = 0;    // continues as all sessions in this language do
  double group_document = 0;  // quotes a document of the group from its start
  // Lengths in tokens. own: own_least * u^-own_tail for uniform u; idioms likewise; documents: exponential.
  double own_least = 1, own_tail = 0;
  double idiom_least = 1, idiom_tail = 0;
  double document_mean = 1;
  // A copy begins at a distance back between 8 tokens and the session's start, at the fraction u^recency of the way on a
  // logarithmic scale (1: log-uniform).
  double recency = 1;
};

// Inside an idiom the next token is the r-th most usual one after the last one, two or three tokens (one at the idiom's
// first token, two at its second, three from then on), r = floor(u^-spread). Which token that is follows from a hash: a text
// source of any size that needs no memory.
struct IdiomSpread {
  double after_one = 1, after_two = 1, after_three = 1;
};

struct Style {
  RoleStyle read;     // system, user and tool turns
  RoleStyle written;  // assistant turns
  IdiomSpread group, common;
  double document_spread = 1;  // document r of a group is quoted for r = floor(u^-spread)
};

enum class Pattern {
  dialogue,  // (user assistant)*
  tools,     // system user (assistant tool)* assistant
  service,   // system user (assistant user-or-tool)* assistant; long replies come from tools
};

// The format of a role's turns in a harness: tokens that most of them begin and end with.
struct Frame {
  std::uint32_t opening = 0, closing = 0;  // tokens
  double share = 0;                        // of the turns
};

// Sessions of one make: a harness of agents, or a way of chatting.
struct SessionClass {
  const char* name = "";
  double share = 1;  // of the kind's sessions
  Pattern pattern = Pattern::dialogue;
  std::uint32_t groups = 1;  // groups that come back; group g = floor(groups * u^group_skew)
  double group_skew = 1;
  double lone_share = 0;            // share of sessions whose group has no other session
  double coherence = 0;             // correlation of turn lengths within a session
  std::uint32_t language = 1;       // classes of one language share common idioms
  std::uint32_t style = 0;          // index in Profile::styles
  std::uint32_t system_tokens = 0;  // system turn, the same in all sessions of the class
  std::uint32_t task_tokens = 0;    // beginning of the first user turn, likewise
  Frame assistant_frame{}, tool_frame{};
  Quantiles assistant_turns{};                   // per session
  Quantiles assistant_tokens{}, reply_tokens{};  // per assistant turn; per user or tool turn after the first assistant turn
  Quantiles leading_tokens{};                    // all turns before the first assistant turn together
};

struct Profile {
  std::string kind;
  std::uint32_t salt = 0;
  std::vector<SessionClass> classes;
  std::vector<Style> styles;
  std::vector<double> rank_share;  // entry i: share of all tokens that the 2^i most frequent canonical ids have
};

const Profile& agent_profile();
const Profile& chat_profile();
const Profile& paper_agent_profile();
const Profile& paper_chat_profile();

}  // namespace slacktier::generator

// Many sessions at once, step by step: which tokens a server decodes and prefills in each decode step.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "harness/sessions.hpp"
#include "tier/hash.hpp"
#include "tier/table.hpp"

namespace slacktier {

// Tokens that one session prefills before its next decode token: all its turns up to the next assistant turn.
struct Prefill {
  std::uint32_t slot = 0;     // batch position of the session, [0, sessions)
  std::uint64_t session = 0;  // running number of the session in this workload, from 0
  std::size_t first = 0;      // index of its first token in the step's prefill_context
  std::size_t tokens = 0;
};

// One step as read by its consumers; views into a StepTokens or a StepTrace. Prefills come before the decode lookups.
struct StepView {
  std::span<const std::uint32_t> context;          // [sessions * q][max_ngram] hash ids, current token first
  std::span<const std::uint8_t> active;            // [sessions * q]; 0: padding, whose context is all zeros
  std::span<const Prefill> prefills;               // in slot order
  std::span<const std::uint32_t> prefill_context;  // [prefill_tokens][max_ngram], the prefills one after another
  std::uint64_t decode_tokens = 0, prefill_tokens = 0;

  // Context of one prefill's tokens, [tokens][max_ngram].
  std::span<const std::uint32_t> context_of(const Prefill& prefill, int max_ngram) const {
    const auto n = static_cast<std::size_t>(max_ngram);
    return prefill_context.subspan(prefill.first * n, prefill.tokens * n);
  }
};

// One step that owns its memory. Reused from step to step it allocates only where a prefill is larger than any before.
struct StepTokens {
  std::vector<std::uint32_t> context;
  std::vector<std::uint8_t> active;
  std::vector<Prefill> prefills;
  std::vector<std::uint32_t> prefill_context;
  std::vector<std::uint64_t> session_of;  // [sessions] running number of each slot's session
  std::uint64_t decode_tokens = 0, prefill_tokens = 0;

  StepView view() const { return {context, active, prefills, prefill_context, decode_tokens, prefill_tokens}; }
};

struct InterleaveOptions {
  std::uint32_t sessions = 64;  // B: concurrent sessions
  std::uint32_t q = 1;          // tokens per session and step
  std::uint64_t steps = 0;      // steps that will be asked for, for the message about too few sessions; 0: not known
  std::uint64_t idle_lo = 0, idle_hi = 0;  // least and most steps that a slot pauses after a turn, before the next prefill
  std::uint64_t seed = 1;                  // of the pauses
  SessionSource* top_up = nullptr;         // used when the source ends; results are labelled (see Interleaver::topped_up)
};

// Each step every slot decodes up to q tokens of its session's current assistant turn; slot b's tokens are entries
// [b * q, b * q + q), the rest of them padding when the turn ends within the step. After a turn the session's next
// system, user and tool turns are prefilled at the start of the next step, then the next assistant turn begins. A
// session that ended is replaced by the next of the source, whose leading turns are prefilled likewise. Contexts are
// those of the session's turns concatenated. Turns behind the last assistant turn are never read by a model and are
// left out. A pause (a user thinks, a tool runs) is padding: the other slots go on. Equal sources and options give equal
// steps.
//
// A table that compresses its vocabulary needs the token map for real raw ids. Generated raw ids stand for no text: without
// a map they are folded (id mod vocabulary), which merges about as many ids as a map would; describe() says so.
class Interleaver {
 public:
  // Keeps references to source, spec and map. Throws UsageError for sessions or q of 0, and when the table compresses
  // its vocabulary but map is the identity though a source holds raw ids of real sessions.
  Interleaver(SessionSource& source, const TableSpec& spec, const TokenMap& map, const InterleaveOptions& options);
  ~Interleaver();
  Interleaver(const Interleaver&) = delete;
  Interleaver& operator=(const Interleaver&) = delete;

  // Throws UsageError when a slot needs a session and there is none left (the message estimates how many are needed),
  // for ids outside the vocabulary, and what the source throws; no step can be had after that.
  void next(StepTokens& out);

  std::uint64_t steps() const { return steps_; }  // handed out so far
  std::uint64_t sessions_started() const { return started_; }
  std::uint64_t sessions_topped_up() const { return topped_up_; }  // of these, from options.top_up
  // The sources and what was taken from each: one line for a table's head and for provenance.
  std::string describe() const;
  const TableSpec& spec() const { return spec_; }
  const InterleaveOptions& options() const { return options_; }

 private:
  struct Slot;
  void start_session(Slot& slot);
  bool folds_ids(const SessionSource& from) const;
  [[noreturn]] void too_few_sessions() const;

  SessionSource& source_;
  const TableSpec& spec_;
  const TokenMap& map_;
  InterleaveOptions options_;
  std::vector<Slot> slots_;
  std::mt19937_64 pauses_;
  Session session_;  // read buffer
  std::uint64_t steps_ = 0, started_ = 0, topped_up_ = 0;
  double sum_steps_ = 0, sum_steps2_ = 0;  // decode steps of the sessions started, and their squares
  bool source_ended_ = false;
};

// The recorded steps of a workload, built once and shared read-only by all configurations that are compared: each
// replays the very same steps. Memory is 4 * max_ngram bytes a token (decode slots and prefill), 1 more a decode slot and 96
// a step, e.g. 10,000 steps of 128 sessions with 2.5 M prefill tokens: 60 MB.
class StepTrace {
 public:
  // Takes `steps` steps from the interleaver. Throws UsageError as Interleaver::next, and when the trace would need more
  // than max_bytes.
  static StepTrace record(Interleaver& interleaver, std::uint64_t steps, std::size_t max_bytes = std::size_t{4} << 30);

  std::uint64_t steps() const { return steps_.size(); }
  StepView step(std::uint64_t index) const;
  std::uint32_t sessions() const { return sessions_; }
  std::uint32_t q() const { return q_; }
  int max_ngram() const { return max_ngram_; }
  std::size_t bytes() const;  // memory held
  std::uint64_t decode_tokens() const { return decode_tokens_; }
  std::uint64_t prefill_tokens() const { return prefill_tokens_; }
  std::uint64_t max_prefill_tokens() const { return max_prefill_; }  // of one step
  std::uint64_t sessions_started() const { return started_; }
  std::uint64_t sessions_topped_up() const { return topped_up_; }
  const std::string& describe() const { return description_; }

 private:
  struct Step {
    std::size_t first_prefill = 0, prefills = 0, first_prefill_token = 0;
    std::uint64_t decode_tokens = 0, prefill_tokens = 0;
  };
  std::uint32_t sessions_ = 0, q_ = 0;
  int max_ngram_ = 0;
  std::vector<Step> steps_;
  std::vector<std::uint32_t> context_, prefill_context_;
  std::vector<std::uint8_t> active_;
  std::vector<Prefill> prefills_;
  std::uint64_t decode_tokens_ = 0, prefill_tokens_ = 0, max_prefill_ = 0, started_ = 0, topped_up_ = 0;
  std::string description_;
};

}  // namespace slacktier

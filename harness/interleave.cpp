#include "harness/interleave.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "platforms/error.hpp"

namespace slacktier {

// A batch position: the hash ids of its session, cut into stretches that are prefilled or decoded.
struct Interleaver::Slot {
  struct Stretch {
    std::size_t end;  // behind its last token
    bool decode;
  };
  std::vector<std::uint32_t> ids;
  std::vector<Stretch> stretches;
  std::size_t stretch = 0;   // current one; stretches.size(): the session has ended
  std::size_t position = 0;  // next token
  std::uint64_t number = 0;  // running number of the session
  std::uint64_t idle = 0;    // steps still to pause
};

Interleaver::Interleaver(SessionSource& source, const TableSpec& spec, const TokenMap& map, const InterleaveOptions& options)
    : source_(source), spec_(spec), map_(map), options_(options), slots_(options.sessions), pauses_(options.seed) {
  if (options.sessions == 0) throw UsageError("0 concurrent sessions: at least one is needed");
  if (options.idle_lo > options.idle_hi) throw UsageError("the shortest pause is longer than the longest");
  if (options.q == 0) throw UsageError("0 tokens per session and step: at least one is needed");
  for (const SessionSource* from :
       {static_cast<const SessionSource*>(&source), static_cast<const SessionSource*>(options.top_up)}) {
    if (!from || from->hash_ids() || from->generated() || !map.identity() || spec.vocabulary == spec.raw_vocabulary)
      continue;
    throw UsageError("table " + spec.name + " compresses its vocabulary: " + from->describe() +
                     " holds raw token ids, so the token map is needed (little-endian int32, one entry per raw id)");
  }
}

Interleaver::~Interleaver() = default;

bool Interleaver::folds_ids(const SessionSource& from) const {
  return from.generated() && !from.hash_ids() && map_.identity() && spec_.vocabulary != spec_.raw_vocabulary;
}

void Interleaver::too_few_sessions() const {
  std::string text = source_.describe() + ": the sessions end in step " + std::to_string(steps_ + 1);
  if (options_.steps > 0) text += " of " + std::to_string(options_.steps);
  text += " with " + std::to_string(options_.sessions) + " at a time (q = " + std::to_string(options_.q) + ", " +
          std::to_string(started_) + " sessions)";
  // Renewals of one slot in N steps, its first session included: N/m + (v + m^2) / (2 m^2) for session lengths of mean m and
  // variance v (the renewal theorem), from the lengths seen so far.
  const double steps = static_cast<double>(std::max(options_.steps, steps_ + 1));
  const auto n = static_cast<double>(started_);
  std::uint64_t needed = options_.sessions;
  if (started_ > 0) {
    const double mean = sum_steps_ / n;
    const double square = sum_steps2_ / n;
    needed = std::max(
        needed, static_cast<std::uint64_t>(std::ceil(options_.sessions * (steps / mean + square / (2 * mean * mean)))));
  }
  needed = std::max(needed, started_ + 1);
  throw UsageError(text + "; about " + std::to_string(needed) +
                   " are needed: give more session files, fewer steps or fewer concurrent sessions, or --top-up generated");
}

void Interleaver::start_session(Slot& slot) {
  SessionSource* from = &source_;
  for (;;) {
    if (!source_ended_ && !source_.next(session_)) source_ended_ = true;
    if (source_ended_) {
      from = options_.top_up;
      if (!from || !from->next(session_)) too_few_sessions();
    }
    slot.ids.clear();
    slot.stretches.clear();
    std::size_t kept = 0;  // stretches up to the last assistant turn
    const bool raw = !from->hash_ids();
    const bool fold = raw && folds_ids(*from);
    const std::uint32_t limit = raw && !map_.identity() ? static_cast<std::uint32_t>(map_.size())
                                : fold                  ? spec_.raw_vocabulary
                                                        : spec_.vocabulary;
    for (std::size_t t = 0; t < session_.turns.size(); ++t) {
      const Turn& turn = session_.turns[t];
      if (turn.ids.empty()) continue;
      for (std::uint32_t id : turn.ids) {
        if (id >= limit) {
          throw UsageError(from->describe() + ": session \"" + session_.id + "\", turns[" + std::to_string(t) +
                           "]: token id " + std::to_string(id) + " is not below " + std::to_string(limit) +
                           ", the vocabulary of table " + spec_.name);
        }
        slot.ids.push_back(fold ? id % spec_.vocabulary : raw ? map_(id) : id);
      }
      const bool decode = turn.role == Role::assistant;
      if (!decode && !slot.stretches.empty() && !slot.stretches.back().decode) {
        slot.stretches.back().end = slot.ids.size();
      } else {
        slot.stretches.push_back({slot.ids.size(), decode});
      }
      if (decode) kept = slot.stretches.size();
    }
    slot.stretches.resize(kept);
    if (kept == 0) continue;  // nothing to decode
    slot.ids.resize(slot.stretches.back().end);
    break;
  }
  slot.stretch = 0;
  slot.position = 0;
  slot.number = started_++;
  if (from != &source_) ++topped_up_;
  std::uint64_t steps = 0;
  std::size_t begin = 0;
  for (const Slot::Stretch& s : slot.stretches) {
    if (s.decode) steps += (s.end - begin + options_.q - 1) / options_.q;
    begin = s.end;
  }
  sum_steps_ += static_cast<double>(steps);
  sum_steps2_ += static_cast<double>(steps) * static_cast<double>(steps);
}

void Interleaver::next(StepTokens& out) {
  const std::size_t q = options_.q;
  const auto n = static_cast<std::size_t>(spec_.max_ngram);
  out.context.assign(slots_.size() * q * n, 0);
  out.active.assign(slots_.size() * q, 0);
  out.prefills.clear();
  out.prefill_context.clear();
  out.session_of.assign(slots_.size(), 0);
  out.decode_tokens = out.prefill_tokens = 0;
  for (std::size_t b = 0; b < slots_.size(); ++b) {
    Slot& slot = slots_[b];
    if (slot.stretch == slot.stretches.size()) start_session(slot);
    out.session_of[b] = slot.number;
    if (slot.idle > 0) {
      --slot.idle;
      continue;
    }
    if (!slot.stretches[slot.stretch].decode) {  // never the last stretch
      const std::size_t tokens = slot.stretches[slot.stretch].end - slot.position;
      const auto first = static_cast<std::size_t>(out.prefill_tokens);
      out.prefills.push_back({static_cast<std::uint32_t>(b), slot.number, first, tokens});
      out.prefill_context.resize((first + tokens) * n);
      gather_context(spec_, slot.ids, slot.position, tokens, out.prefill_context.data() + first * n);
      out.prefill_tokens += tokens;
      slot.position += tokens;
      ++slot.stretch;
    }
    const std::size_t end = slot.stretches[slot.stretch].end;
    const std::size_t tokens = std::min(q, end - slot.position);
    gather_context(spec_, slot.ids, slot.position, tokens, out.context.data() + b * q * n);
    std::fill_n(out.active.begin() + static_cast<std::ptrdiff_t>(b * q), tokens, std::uint8_t{1});
    out.decode_tokens += tokens;
    slot.position += tokens;
    if (slot.position == end && ++slot.stretch < slot.stretches.size() && options_.idle_hi > 0)
      slot.idle = options_.idle_lo + pauses_() % (options_.idle_hi - options_.idle_lo + 1);
  }
  ++steps_;
}

std::string Interleaver::describe() const {
  std::string text = source_.describe() + "; " + std::to_string(started_ - topped_up_) + " sessions used";
  if (source_.generated()) text += " (generated)";
  if (topped_up_ > 0) {
    text += ", topped up by " + std::to_string(topped_up_) + (options_.top_up->generated() ? " generated" : "") +
            " sessions from " + options_.top_up->describe();
  }
  if (folds_ids(source_) || (topped_up_ > 0 && folds_ids(*options_.top_up))) {
    text += "; generated ids folded to " + std::to_string(spec_.vocabulary) + " (no token map)";
  }
  return text;
}

StepTrace StepTrace::record(Interleaver& interleaver, std::uint64_t steps, std::size_t max_bytes) {
  StepTrace trace;
  trace.sessions_ = interleaver.options().sessions;
  trace.q_ = interleaver.options().q;
  trace.max_ngram_ = interleaver.spec().max_ngram;
  const std::size_t slots = std::size_t{trace.sessions_} * trace.q_;
  const std::size_t decode_bytes = slots * (static_cast<std::size_t>(trace.max_ngram_) * sizeof(std::uint32_t) + 1);
  const auto too_large = [&](std::uint64_t recorded) {
    return UsageError("recording " + std::to_string(steps) + " steps of " + std::to_string(trace.sessions_) +
                      " sessions exceeds the limit of " + std::to_string(max_bytes >> 20) + " MiB in step " +
                      std::to_string(recorded + 1) + ": ask for fewer steps or sessions");
  };
  if (steps > max_bytes / decode_bytes) throw too_large(max_bytes / decode_bytes);
  trace.steps_.reserve(steps);
  trace.context_.reserve(steps * slots * static_cast<std::size_t>(trace.max_ngram_));
  trace.active_.reserve(steps * slots);
  StepTokens tokens;
  for (std::uint64_t i = 0; i < steps; ++i) {
    interleaver.next(tokens);
    Step step;
    step.first_prefill = trace.prefills_.size();
    step.prefills = tokens.prefills.size();
    step.first_prefill_token = trace.prefill_tokens_;
    step.decode_tokens = tokens.decode_tokens;
    step.prefill_tokens = tokens.prefill_tokens;
    trace.steps_.push_back(step);
    trace.context_.insert(trace.context_.end(), tokens.context.begin(), tokens.context.end());
    trace.active_.insert(trace.active_.end(), tokens.active.begin(), tokens.active.end());
    trace.prefills_.insert(trace.prefills_.end(), tokens.prefills.begin(), tokens.prefills.end());
    trace.prefill_context_.insert(trace.prefill_context_.end(), tokens.prefill_context.begin(),
                                  tokens.prefill_context.end());
    trace.decode_tokens_ += tokens.decode_tokens;
    trace.prefill_tokens_ += tokens.prefill_tokens;
    trace.max_prefill_ = std::max(trace.max_prefill_, tokens.prefill_tokens);
    if (trace.bytes() > max_bytes) throw too_large(i);
  }
  trace.prefill_context_.shrink_to_fit();
  trace.prefills_.shrink_to_fit();
  trace.started_ = interleaver.sessions_started();
  trace.topped_up_ = interleaver.sessions_topped_up();
  trace.description_ = interleaver.describe();
  return trace;
}

StepView StepTrace::step(std::uint64_t index) const {
  const Step& step = steps_.at(index);
  const auto n = static_cast<std::size_t>(max_ngram_);
  const std::size_t slots = std::size_t{sessions_} * q_;
  StepView view;
  view.context = std::span(context_).subspan(index * slots * n, slots * n);
  view.active = std::span(active_).subspan(index * slots, slots);
  view.prefills = std::span(prefills_).subspan(step.first_prefill, step.prefills);
  view.prefill_context = std::span(prefill_context_).subspan(step.first_prefill_token * n, step.prefill_tokens * n);
  view.decode_tokens = step.decode_tokens;
  view.prefill_tokens = step.prefill_tokens;
  return view;
}

std::size_t StepTrace::bytes() const {
  return context_.capacity() * sizeof(std::uint32_t) + prefill_context_.capacity() * sizeof(std::uint32_t) +
         active_.capacity() + prefills_.capacity() * sizeof(Prefill) + steps_.capacity() * sizeof(Step);
}

}  // namespace slacktier

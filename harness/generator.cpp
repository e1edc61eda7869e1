#include "harness/generator.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/generator/profile.hpp"
#include "harness/generator/tokens.hpp"
#include "platforms/error.hpp"

namespace slacktier {
namespace {

using generator::kProbabilities;
using generator::Pattern;
using generator::Quantiles;
using generator::SessionClass;

// Half is added so that lengths of 0 have a logarithm.
std::size_t quantile(const Quantiles& values, double u) {
  std::size_t i = 0;
  while (i + 2 < values.size() && u > kProbabilities[i + 1]) ++i;
  const double f = (u - kProbabilities[i]) / (kProbabilities[i + 1] - kProbabilities[i]);
  const double value = std::exp(std::log(values[i] + 0.5) * (1 - f) + std::log(values[i + 1] + 0.5) * f) - 0.5;
  return static_cast<std::size_t>(std::max(1.0, std::round(value)));
}

double normal_cdf(double z) { return 0.5 * std::erfc(-z * 0.7071067811865476); }

class GeneratedSessions final : public SessionSource {
 public:
  GeneratedSessions(const generator::Profile& profile, std::uint64_t seed)
      : profile_(profile), seed_(seed), shape_(~seed), tokens_(profile, seed), class_point_(shape_.uniform()) {}

  bool next(Session& session) override {
    generator::Random& random = shape_;
    // Steps of the golden ratio instead of draws: every stretch of the stream has its due share of each class, as a file of
    // sessions in turn from many groups has.
    class_point_ = std::fmod(class_point_ + 0.6180339887498949, 1.0);
    const std::size_t index = choose_class(class_point_);
    const SessionClass& made = profile_.classes[index];
    std::uint64_t group = 0;
    if (random.uniform() < made.lone_share) {
      group = 1000 + lone_groups_++;
    } else {
      group = static_cast<std::uint64_t>(made.groups * std::pow(random.uniform(), made.group_skew));
    }
    session.id = fmt::format("{}-{}-{}", profile_.kind, seed_, count_++);
    session.group = fmt::format("{}/{}-{}", profile_.kind, made.name, group);
    tokens_.start_session(index * 7919 + group, made.language);
    turns_ = 0;

    const generator::Style& style = profile_.styles[made.style];
    const std::size_t assistant_turns = quantile(made.assistant_turns, random.uniform());
    // Turns of one session are alike in length: a Gaussian copula with one hidden value per session and role.
    const double written = random.normal(), read = random.normal(), own = std::sqrt(1 - made.coherence * made.coherence);
    auto length = [&](const Quantiles& values, double hidden) {
      return quantile(values, normal_cdf(made.coherence * hidden + own * random.normal()));
    };

    const std::uint64_t text = index * 4;  // of the class: system turn, task, formats
    std::size_t leading = quantile(made.leading_tokens, random.uniform());
    if (made.system_tokens > 0) {
      const std::size_t system = std::min<std::size_t>(made.system_tokens, leading);
      add_leading(session, Role::system, system, style, text, system);
      leading -= system;
    }
    if (leading > 0) add_leading(session, Role::user, leading, style, text + 1, made.task_tokens);
    for (std::size_t turn = 0; turn < assistant_turns; ++turn) {
      add_turn(session, Role::assistant, length(made.assistant_tokens, written), style, made.assistant_frame, text + 2);
      if (turn + 1 == assistant_turns) break;
      const std::size_t reply = length(made.reply_tokens, read);
      const bool tool = made.pattern == Pattern::tools || (made.pattern == Pattern::service && reply >= 100);
      if (tool) {
        add_turn(session, Role::tool, reply, style, made.tool_frame, text + 3);
      } else {
        add_turn(session, Role::user, reply, style, {}, 0);
      }
    }
    session.turns.resize(turns_);
    return true;
  }

  std::string describe() const override {
    return fmt::format("generated {} sessions, seed {}: {} handed out", profile_.kind, seed_, count_);
  }
  bool generated() const override { return true; }

 private:
  std::size_t choose_class(double u) const {
    std::size_t index = 0;
    while (index + 1 < profile_.classes.size() && u >= profile_.classes[index].share) u -= profile_.classes[index++].share;
    return index;
  }

  // Adds an empty turn of a role, its memory reused.
  std::vector<std::uint32_t>& new_turn(Session& session, Role role) {
    if (turns_ == session.turns.size()) session.turns.emplace_back();
    Turn& turn = session.turns[turns_++];
    turn.role = role;
    turn.ids.clear();
    tokens_.start_turn();
    return turn.ids;
  }

  // A turn before the first assistant turn, whose first `shared` tokens are those of a text that the class has in common.
  void add_leading(Session& session, Role role, std::size_t tokens, const generator::Style& style, std::uint64_t text,
                   std::size_t shared) {
    std::vector<std::uint32_t>& ids = new_turn(session, role);
    while (ids.size() < std::min(tokens, shared)) ids.push_back(tokens_.quote(text, ids.size()));
    while (ids.size() < tokens) ids.push_back(tokens_.next(style, style.read));
  }

  void add_turn(Session& session, Role role, std::size_t tokens, const generator::Style& style,
                const generator::Frame& frame, std::uint64_t text) {
    std::vector<std::uint32_t>& ids = new_turn(session, role);
    const bool framed = frame.share > 0 && shape_.uniform() < frame.share;
    const std::size_t opening = framed ? std::min<std::size_t>(frame.opening, tokens) : 0;
    const std::size_t closing = framed && tokens >= frame.opening + frame.closing ? frame.closing : 0;
    while (ids.size() < opening) ids.push_back(tokens_.quote(text, ids.size()));
    const generator::RoleStyle& role_style = role == Role::assistant ? style.written : style.read;
    while (ids.size() < tokens - closing) ids.push_back(tokens_.next(style, role_style));
    while (ids.size() < tokens) ids.push_back(tokens_.quote(text, 100 + tokens - ids.size()));
  }

  const generator::Profile& profile_;
  std::uint64_t seed_;
  generator::Random shape_;  // classes, groups and lengths
  generator::TokenProcess tokens_;
  double class_point_;
  std::uint64_t count_ = 0, lone_groups_ = 0;
  std::size_t turns_ = 0;  // of the session being made
};

}  // namespace

std::vector<std::string> generated_kinds() { return {"agent", "chat", "paper-agent", "paper-chat"}; }

std::unique_ptr<SessionSource> generated_sessions(const std::string& kind, std::uint64_t seed) {
  for (const generator::Profile* profile : {&generator::agent_profile(), &generator::chat_profile(),
                                            &generator::paper_agent_profile(), &generator::paper_chat_profile()}) {
    if (profile->kind == kind) return std::make_unique<GeneratedSessions>(*profile, seed);
  }
  throw UsageError(fmt::format("no generated sessions of kind '{}': use {}", kind, fmt::join(generated_kinds(), ", ")));
}

}  // namespace slacktier

// Sessions for machines without a trace: made-up token ids that a cache cannot tell from real sessions.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "harness/sessions.hpp"

namespace slacktier {

// The kinds of sessions that generated_sessions knows: "agent" (coding and service agents with tools) and "chat", after real
// sessions; "paper-agent" and "paper-chat", made to hit as the paper's traffic does (harness/generator/profile_paper.cpp).
std::vector<std::string> generated_kinds();

// An unbounded stream of sessions of a kind, of raw DeepSeek-V3 token ids in [3, 128000); equal kinds and seeds give equal
// sessions. What it imitates is reuse: how often, and after how many other lookups, the 2-, 3- and 4-grams of decoded tokens
// come back, within a session, a group and the whole stream; also session lengths, roles and the share of prefill. The
// texts mean nothing. It holds aggregate statistics only (harness/generator/profile.hpp says which, and how they were got)
// and about 10 MB of state. Throws UsageError for an unknown kind, listing those there are.
std::unique_ptr<SessionSource> generated_sessions(const std::string& kind, std::uint64_t seed);

}  // namespace slacktier

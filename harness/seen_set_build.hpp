// Seen-sets from token sessions: which rows a body of traces asks for.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tier/seen_set.hpp"

namespace slacktier {

struct SeenSetOptions {
  std::string table = "engram_v41";
  std::vector<std::string> traces;  // session files (harness/sessions.hpp)
  std::string token_map;            // of tables that compress their vocabulary
  std::uint32_t ranks = 4;
  ShardMap shard_map = ShardMap::contiguous;
  std::string out;
  std::function<void()> between_waves;  // may throw, e.g. Interrupted: nothing is written then
};

// Hashes every token of every turn in its context and writes the set of their rows. Throws UsageError for traces, table and
// map that cannot be used, std::system_error when the file cannot be written.
SeenSetHeader build_seen_set(const SeenSetOptions& options);

}  // namespace slacktier

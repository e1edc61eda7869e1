#include "harness/seen_set_build.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "harness/sessions.hpp"
#include "platforms/error.hpp"

namespace slacktier {

SeenSetHeader build_seen_set(const SeenSetOptions& options) {
  const TableSpec spec = load_table_spec(options.table);
  if (options.token_map.empty() && spec.raw_vocabulary != spec.vocabulary)
    throw UsageError(fmt::format("table {} compresses its vocabulary of {} ids to {}: give its token map with --token-map",
                                 spec.name, spec.raw_vocabulary, spec.vocabulary));
  const TokenMap map = options.token_map.empty() ? TokenMap() : TokenMap::load(options.token_map, spec);
  SessionOptions session_options;
  session_options.raw_vocabulary = spec.raw_vocabulary;
  const auto sessions = open_sessions(options.traces, session_options);
  SeenSetBuilder builder(spec, options.shard_map, options.ranks);
  Session session;
  std::vector<std::uint32_t> ids, context;
  const auto order = static_cast<std::size_t>(spec.max_ngram);
  constexpr std::size_t wave = 8192;
  while (sessions->next(session)) {
    ids.clear();
    for (const Turn& turn : session.turns)
      for (const std::uint32_t id : turn.ids) ids.push_back(map(id));
    for (std::size_t begin = 0; begin < ids.size(); begin += wave) {
      const std::size_t tokens = std::min(wave, ids.size() - begin);
      context.resize(tokens * order);
      gather_context(spec, ids, begin, tokens, context.data());
      builder.add(context);
      if (options.between_waves) options.between_waves();
    }
    builder.end_session();
  }
  return builder.write(options.out, sessions->describe());
}

}  // namespace slacktier

#include "harness/access/corpus.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "harness/sessions.hpp"
#include "platforms/error.hpp"
#include "tier/hash.hpp"

namespace slacktier {

Corpus read_corpus(const AccessOptions& options) {
  const TableSpec spec = load_table_spec(options.table);
  if (options.token_map.empty() && spec.vocabulary != spec.raw_vocabulary)
    throw UsageError(fmt::format("table {} compresses its vocabulary: give its token map with --token-map", spec.name));
  const TokenMap map = options.token_map.empty() ? TokenMap() : TokenMap::load(options.token_map, spec);
  const std::size_t layer = options.layer < 0 ? spec.layers.size() - 1 : spec.layer_index(options.layer);
  Corpus corpus;
  corpus.columns = spec.rows_per_token();
  corpus.table_rows = spec.layers[layer].rows;
  std::vector<std::size_t> first_column;
  for (std::size_t c = 0; c < spec.order.size(); ++c) {
    const auto at = std::find(corpus.orders.begin(), corpus.orders.end(), spec.order[c]);
    if (at != corpus.orders.end()) {
      ++corpus.heads[static_cast<std::size_t>(at - corpus.orders.begin())];
    } else {
      corpus.orders.push_back(spec.order[c]);
      corpus.heads.push_back(1);
      first_column.push_back(c);
    }
  }
  SessionOptions reading;
  reading.raw_vocabulary = spec.raw_vocabulary;
  const auto source = open_sessions(options.traces, reading);
  const auto hash = make_hash(spec);
  Session session;
  std::vector<std::uint32_t> context, rows;
  const auto order = static_cast<std::size_t>(spec.max_ngram);
  while (source->next(session)) {
    if (options.watch) options.watch();
    CorpusSession one{session.group, corpus.ids.size(), 0};
    for (const Turn& turn : session.turns)
      for (const std::uint32_t id : turn.ids) {
        corpus.ids.push_back(map(id));
        corpus.decode.push_back(turn.role == Role::assistant);
      }
    one.tokens = corpus.ids.size() - one.first;
    const std::span<const std::uint32_t> ids = std::span(corpus.ids).subspan(one.first, one.tokens);
    for (std::size_t begin = 0; begin < one.tokens; begin += 4096) {
      const std::size_t n = std::min<std::size_t>(4096, one.tokens - begin);
      context.resize(n * order);
      gather_context(spec, ids, begin, n, context.data());
      rows.resize(n * corpus.columns);
      hash->rows(layer, context.data(), n, rows.data());
      for (std::size_t t = 0; t < n; ++t)
        for (const std::size_t c : first_column) corpus.rows.push_back(rows[t * corpus.columns + c]);
    }
    corpus.sessions.push_back(std::move(one));
  }
  if (corpus.sessions.size() < 2)
    throw UsageError(
        fmt::format("{}: one session cannot be split into a training and a test half: give more", source->describe()));
  return corpus;
}

}  // namespace slacktier

// Which shard map: a step is as slow as the rank that reads most, and which rows a rank owns decides how many it reads.
#include <algorithm>
#include <cstdint>

#include "harness/access/questions.hpp"
#include "harness/misses.hpp"

namespace slacktier {

Table answer_shards(const Corpus& corpus, const AccessOptions& options) {
  MissesOptions asked;
  asked.table = options.table;
  asked.token_map = options.token_map;
  asked.traces = options.traces;
  asked.layers = {options.layer < 0 ? load_table_spec(options.table).layers.back().layer : options.layer};
  asked.ranks = options.ranks;
  asked.sessions = static_cast<std::uint32_t>(std::min<std::size_t>(options.sessions, corpus.sessions.size()));
  asked.warm_steps = 0;
  const std::uint64_t rows = std::max<std::uint64_t>(1, options.cache_rows / options.ranks);
  asked.capacities = {0, rows};
  asked.watch = [&](std::uint64_t, std::uint64_t) {
    if (options.watch) options.watch();
  };
  Table table;
  table.title = "Pages that the slowest rank reads in a decode step (LRU)";
  table.columns = {column("rows cached per rank", ""), column("contiguous", "pages"),    column("its mean rank", "pages"),
                   column("striped", "pages"),         column("its mean rank", "pages"), column("fewer, striped", "%")};
  std::vector<std::vector<Cell>> cells(asked.capacities.size());
  std::vector<double> contiguous(asked.capacities.size(), 0.0);
  for (const ShardMap map : {ShardMap::contiguous, ShardMap::striped}) {
    asked.shard_map = map;
    const MissesRun run = measure_misses(asked);
    for (std::size_t c = 0; c < asked.capacities.size(); ++c) {
      double slowest = 0, sum = 0;
      for (const RankMisses& rank : run.results.front().layers.front().ranks) {
        const double pages = rank.curve[c].pages_mean.value_or(0);
        slowest = std::max(slowest, pages);
        sum += pages;
      }
      if (map == ShardMap::contiguous) {
        cells[c].push_back(Cell::count(static_cast<std::int64_t>(asked.capacities[c])));
        contiguous[c] = slowest;
      }
      cells[c].push_back(Cell::number(slowest, 1));
      cells[c].push_back(Cell::number(sum / options.ranks, 1));
      if (map == ShardMap::striped)
        cells[c].push_back(Cell::number(contiguous[c] > 0 ? 100 * (1 - slowest / contiguous[c]) : 0, 1));
    }
  }
  for (auto& row : cells) table.rows.push_back(std::move(row));
  table.footnotes = {fmt::format("{} ranks, {} sessions at once; counted from the first step, with nothing cached",
                                 options.ranks, asked.sessions)};
  return table;
}

}  // namespace slacktier

// What the paper's lossy skipping knows: rows that other sessions of the same kind have asked for.
#include <unistd.h>

#include <filesystem>

#include <fmt/format.h>

#include "harness/generator.hpp"
#include "harness/paper/experiments.hpp"
#include "platforms/error.hpp"
#include "tier/seen_set.hpp"

namespace slacktier::paper {

GeneratedSeenSet::GeneratedSeenSet(const std::string& load, std::uint64_t seed, std::uint64_t tokens,
                                   const std::function<bool()>& stop)
    : path_((std::filesystem::temp_directory_path() / fmt::format("slacktier-seen-{}-{}", ::getpid(), load)).string()) {
  const TableSpec spec = load_table_spec("engram_v41");
  const auto sessions = generated_sessions("paper-" + load, seed + 1'000'003);
  SeenSetBuilder builder(spec, ShardMap::contiguous, 4);
  Session session;
  std::vector<std::uint32_t> ids, context;
  const auto order = static_cast<std::size_t>(spec.max_ngram);
  for (std::uint64_t done = 0; done < tokens; done += ids.size()) {
    if (stop && stop()) throw Interrupted();
    sessions->next(session);
    ids.clear();
    // Folded into the table's vocabulary as the interleaver folds generated ids.
    for (const Turn& turn : session.turns)
      for (const std::uint32_t id : turn.ids) ids.push_back(id % spec.vocabulary);
    context.resize(ids.size() * order);
    gather_context(spec, ids, 0, ids.size(), context.data());
    builder.add(context);
    builder.end_session();
  }
  builder.write(path_, sessions->describe());
}

GeneratedSeenSet::~GeneratedSeenSet() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

}  // namespace slacktier::paper

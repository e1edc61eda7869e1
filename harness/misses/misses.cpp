#include "harness/misses.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <deque>

#include "harness/cache_policy.hpp"
#include "harness/generator.hpp"
#include "harness/interleave.hpp"
#include "harness/misses/parallel.hpp"
#include "harness/misses/rank_job.hpp"
#include "platforms/error.hpp"
#include "tier/hash.hpp"

namespace slacktier {
namespace {

constexpr std::size_t block_tokens = 32'768;  // hashed and passed on at once

// Knows whether the sessions have come to their end.
class Watched final : public SessionSource {
 public:
  explicit Watched(std::unique_ptr<SessionSource> source) : source_(std::move(source)) {}
  bool next(Session& session) override {
    if (source_->next(session)) return true;
    ended = true;
    return false;
  }
  std::string describe() const override { return source_->describe(); }
  bool hash_ids() const override { return source_->hash_ids(); }
  bool generated() const override { return source_->generated(); }
  bool ended = false;

 private:
  std::unique_ptr<SessionSource> source_;
};

std::unique_ptr<SessionSource> open(const std::vector<std::string>& traces, const TableSpec& spec, std::uint64_t seed) {
  constexpr std::string_view generated = "generated:";
  if (traces.empty()) throw UsageError("no sessions: give --trace FILE (slacktier-harness trace import makes them)");
  if (traces.size() == 1 && traces[0].starts_with(generated))
    return generated_sessions(traces[0].substr(generated.size()), seed);
  SessionOptions reading;
  reading.raw_vocabulary = spec.raw_vocabulary;
  return open_sessions(traces, reading);
}

MissesOptions checked(MissesOptions options) {
  if (options.capacities.empty()) options.capacities = default_capacities();
  std::sort(options.capacities.begin(), options.capacities.end());
  options.capacities.erase(std::unique(options.capacities.begin(), options.capacities.end()), options.capacities.end());
  if (options.capacities.size() > 250)
    throw UsageError(fmt::format("{} capacities: at most 250", options.capacities.size()));
  if (options.sessions == 0 || options.q == 0) throw UsageError("--sessions and --tokens-per-session: at least 1");
  if (options.phase != "decode" && options.phase != "prefill" && options.phase != "all")
    throw UsageError(fmt::format("--phase {}: use decode, prefill or all", options.phase));
  if (!(options.sample > 0 && options.sample <= 1))
    throw UsageError(fmt::format("--sample {}: a share of the rows above 0, at most 1, is needed", options.sample));
  if (options.idle_lo > options.idle_hi)
    throw UsageError(fmt::format("--idle {}:{}: the first is larger", options.idle_lo, options.idle_hi));
  if (options.steps > 0 && options.steps <= options.warm_steps)
    throw UsageError(
        fmt::format("--steps {}: {} of warm-up leave none to count; see --warm-steps", options.steps, options.warm_steps));
  if (options.traces.size() == 1 && options.traces[0].starts_with("generated:") && options.steps == 0)
    throw UsageError("generated sessions have no end: say how many --steps");
  for (const std::string& policy : options.policies) {
    const std::vector<std::string> known = cache_policies();
    if (std::find(known.begin(), known.end(), policy) == known.end())
      throw UsageError(fmt::format("unknown cache policy '{}': use one of {}", policy, fmt::join(known, ", ")));
    if (options.per_session && policy != "lru")
      throw UsageError(fmt::format("--cache per-session: with policy lru only, not {}", policy));
  }
  if (options.policies.empty()) throw UsageError("no cache policy");
  if (options.chunk_tokens == 0)
    options.chunk_tokens = options.phase == "decode" ? std::uint64_t{options.sessions} * options.q : 8192;
  return options;
}

// The rows of one layer for a block of steps.
struct LayerBlock {
  std::vector<std::uint32_t> rows;
  std::vector<HashedStep> steps;
};

void hash_block(const RowHash& hash, const TableSpec& spec, std::size_t layer, const std::deque<StepTokens>& block,
                std::size_t used, std::uint64_t first_step, std::uint64_t warm_steps, LayerBlock& out) {
  const std::size_t columns = spec.rows_per_token();
  std::size_t tokens = 0;
  for (std::size_t s = 0; s < used; ++s) tokens += block[s].active.size() + block[s].prefill_tokens;
  out.rows.resize(tokens * columns);
  out.steps.clear();
  std::size_t at = 0;
  const auto rows_of = [&](const std::vector<std::uint32_t>& context, std::size_t n) {
    const std::span<std::uint32_t> rows(out.rows.data() + at, n * columns);
    hash.rows(layer, context.data(), n, rows.data());
    at += rows.size();
    return rows;
  };
  for (std::size_t s = 0; s < used; ++s) {
    HashedStep step;
    step.tokens = &block[s];
    step.counted = first_step + s >= warm_steps;
    step.prefill_rows = rows_of(block[s].prefill_context, block[s].prefill_tokens);
    step.decode_rows = rows_of(block[s].context, block[s].active.size());
    out.steps.push_back(step);
  }
}

void train(const MissesOptions& options, const TableSpec& spec, const TokenMap& map, const RowHash& hash,
           std::vector<std::unique_ptr<RankJob>>& jobs) {
  const auto source = open(options.train, spec, options.seed);
  Session session;
  std::vector<std::uint32_t> ids, context, rows;
  const auto order = static_cast<std::size_t>(spec.max_ngram);
  const bool fold = source->generated() && map.identity() && spec.vocabulary != spec.raw_vocabulary;
  while (source->next(session)) {
    if (options.watch) options.watch(0, 0);
    ids.clear();
    for (const Turn& turn : session.turns)
      for (const std::uint32_t id : turn.ids) ids.push_back(fold ? id % spec.vocabulary : map(id));
    for (std::size_t begin = 0; begin < ids.size(); begin += 4096) {
      const std::size_t n = std::min<std::size_t>(4096, ids.size() - begin);
      context.resize(n * order);
      gather_context(spec, ids, begin, n, context.data());
      rows.resize(n * spec.rows_per_token());
      for (std::size_t layer = 0; layer < spec.layers.size(); ++layer) {
        hash.rows(layer, context.data(), n, rows.data());
        for (auto& job : jobs)
          if (job->layer_index() == layer) job->train(rows);
      }
    }
  }
}

}  // namespace

std::vector<std::uint64_t> default_capacities() {
  return {0, 10'000, 30'000, 62'500, 125'000, 250'000, 500'000, 750'000, 1'000'000, 2'000'000, 5'000'000};
}

MissesRun measure_misses(const MissesOptions& given) {
  const MissesOptions options = checked(given);
  const TableSpec spec = load_table_spec(options.table);
  const TokenMap map = options.token_map.empty() ? TokenMap() : TokenMap::load(options.token_map, spec);
  const auto hash = make_hash(spec);
  Watched source(open(options.traces, spec, options.seed));
  InterleaveOptions interleaving;
  interleaving.sessions = options.sessions;
  interleaving.q = options.q;
  interleaving.steps = options.steps;
  interleaving.idle_lo = options.idle_lo;
  interleaving.idle_hi = options.idle_hi;
  interleaving.seed = options.seed;
  Interleaver interleaver(source, spec, map, interleaving);

  const bool curve = std::find(options.policies.begin(), options.policies.end(), "lru") != options.policies.end();
  const bool record = options.policies.size() > (curve ? 1u : 0u);
  std::vector<std::size_t> layers;
  for (const int layer : options.layers) layers.push_back(spec.layer_index(layer));
  if (layers.empty())
    for (std::size_t l = 0; l < spec.layers.size(); ++l) layers.push_back(l);
  std::vector<std::uint32_t> ranks = options.on_ranks;
  if (ranks.empty())
    for (std::uint32_t r = 0; r < options.ranks; ++r) ranks.push_back(r);
  std::vector<std::unique_ptr<RankJob>> jobs;
  for (const std::size_t layer : layers)
    for (const std::uint32_t rank : ranks)
      jobs.push_back(std::make_unique<RankJob>(options, spec, layer, rank, curve, record));
  if (!options.train.empty()) train(options, spec, map, *hash, jobs);

  MissesRun run;
  std::deque<StepTokens> block;
  std::vector<LayerBlock> hashed(layers.size());
  std::uint64_t steps = 0, repeated = 0, decoded = 0;
  const auto order = static_cast<std::size_t>(spec.max_ngram);
  for (bool more = true; more;) {
    std::size_t used = 0;
    for (std::size_t tokens = 0; more && tokens < block_tokens; ++used) {
      if (options.steps > 0 && steps + used == options.steps) {
        more = false;
        break;
      }
      if (used == block.size()) block.emplace_back();
      StepTokens& step = block[used];
      try {
        interleaver.next(step);
      } catch (const UsageError&) {
        // Without --steps the workload is as long as the sessions last.
        if (!source.ended || options.steps > 0 || steps + used <= options.warm_steps) throw;
        more = false;
        break;
      }
      tokens += step.active.size() + step.prefill_tokens;
      run.tokens += step.decode_tokens + step.prefill_tokens;
      decoded += step.decode_tokens;
      if (order > 1)
        for (std::size_t t = 0; t < step.active.size(); ++t)
          repeated += step.active[t] && step.context[t * order] == step.context[t * order + 1];
    }
    run_jobs(layers.size(), options.threads,
             [&](std::size_t l) { hash_block(*hash, spec, layers[l], block, used, steps, options.warm_steps, hashed[l]); });
    run_jobs(jobs.size(), options.threads, [&](std::size_t j) {
      for (const HashedStep& step : hashed[j / ranks.size()].steps) jobs[j]->step(step);
    });
    steps += used;
    std::uint64_t recorded = 0;
    for (const auto& job : jobs) recorded += job->recorded_bytes();
    if (recorded > options.memory_bytes)
      throw UsageError(
          fmt::format("the rows to replay policies over exceed {} MiB in step {}: give fewer --steps, --layers "
                      "or --rank, a --sample below 1, or more --memory; policy lru needs none",
                      options.memory_bytes >> 20, steps));
    if (options.watch) options.watch(steps, options.steps);
  }
  run_jobs(jobs.size(), options.threads, [&](std::size_t j) { jobs[j]->end_steps(); });

  run.description = interleaver.describe();
  run.sessions = interleaver.sessions_started();
  for (const auto& job : jobs) run.lookups += job->lookups();
  if (decoded > 0 && repeated * 2 > decoded)
    run.warnings.push_back({"degenerate_sessions",
                            fmt::format("{:.0f}% of the decoded tokens repeat the one before: hit rates of such text say "
                                        "nothing of real traffic",
                                        100.0 * static_cast<double>(repeated) / static_cast<double>(decoded)),
                            "/results"});
  if (source.generated())
    run.warnings.push_back({"generated_sessions", "sessions are generated, not those of users", "/settings/traces"});
  for (const auto& job : jobs)
    if (job->frame().shard_rows && options.capacities.back() > *job->frame().shard_rows) {
      run.warnings.push_back({"capacity_above_table",
                              fmt::format("a cache of {} rows is larger than a rank's share of the table, {} rows: it holds "
                                          "all of it",
                                          options.capacities.back(), *job->frame().shard_rows),
                              "/results"});
      break;
    }

  for (const std::string& policy : options.policies) {
    MissesResult result;
    result.workload = options.workload;
    result.policy = policy;
    result.sessions = options.sessions;
    result.q = options.q;
    result.phase = options.phase;
    result.steps = jobs.front()->asked().units;
    result.warm_steps = options.warm_steps;
    if (options.phase != "decode") result.chunk_tokens = options.chunk_tokens;
    result.cache = options.per_session ? "per-session" : "shared";
    result.idle_lo = options.idle_lo;
    result.idle_hi = options.idle_hi;
    if (options.sample < 1) result.sampled = MissesSampled{"shards", options.sample, {}};
    std::vector<RankMisses> curves;
    if (policy == "lru") {
      for (const auto& job : jobs) {
        curves.push_back(job->curve());
        if (const auto error = job->sampling_error())
          result.sampled->error = std::max(result.sampled->error.value_or(0), *error);
      }
    } else {
      const std::size_t points = options.capacities.size();
      for (const auto& job : jobs) {
        curves.push_back(job->frame());
        curves.back().curve.resize(points);
      }
      run_jobs(jobs.size() * points, options.threads, [&](std::size_t i) {
        curves[i / points].curve[i % points] = jobs[i / points]->replay(policy, options.capacities[i % points]);
        if (options.threads <= 1 && options.watch) options.watch(steps, options.steps);
      });
    }
    for (std::size_t j = 0; j < jobs.size(); ++j) {
      if (j % ranks.size() == 0) result.layers.push_back({spec.layers[jobs[j]->layer_index()].layer, {}});
      result.layers.back().ranks.push_back(std::move(curves[j]));
    }
    run.results.push_back(std::move(result));
  }
  return run;
}

}  // namespace slacktier

#include "harness/misses/rank_job.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "harness/cache_policy.hpp"

namespace slacktier {
namespace {

constexpr std::uint64_t no_session = ~std::uint64_t{0};

std::uint64_t kept_of(double sample) { return static_cast<std::uint64_t>(std::llround(sample * 4294967296.0)); }

bool is_static(const std::string& policy) { return policy == "static" || policy == "static-lru"; }

}  // namespace

RankJob::RankJob(const MissesOptions& options, const TableSpec& spec, std::size_t layer_index, std::uint32_t rank,
                 bool curve, bool record)
    : options_(options),
      layer_index_(layer_index),
      rank_(rank),
      shard_(make_shard(spec, layer_index, options.shard_map, options.ranks, rank)),
      rows_per_page_(make_page_geometry(options.page_bytes, spec.row_bytes).rows_per_page),
      maker_(spec, shard_, rows_per_page_, kept_of(options.sample)),
      record_(record),
      columns_(spec.rows_per_token()),
      chunk_(options.chunk_tokens) {
  for (auto& phase : asked_.lookups) phase.assign(maker_.orders().size(), 0);
  for (const std::string& policy : options.policies) trains_ = trains_ || is_static(policy);
  if (!curve) return;
  meter_ = std::make_unique<Meter>(options.capacities, maker_.orders());
  stacks_.resize(options.per_session ? options.sessions : 1);
  session_of_.assign(stacks_.size(), no_session);
  for (const std::uint64_t capacity : options.capacities)
    limits_.push_back(scaled(options.per_session ? capacity / options.sessions : capacity));
}

std::uint64_t RankJob::scaled(std::uint64_t capacity) const {
  return options_.sample < 1 ? static_cast<std::uint64_t>(std::llround(static_cast<double>(capacity) * options_.sample))
                             : capacity;
}

void RankJob::step(const HashedStep& step) {
  const StepTokens& tokens = *step.tokens;
  const bool prefill_counted = step.counted && options_.phase != "decode";
  const bool decode_counted = step.counted && options_.phase != "prefill";
  if (options_.per_session && !stacks_.empty()) {
    for (std::size_t slot = 0; slot < stacks_.size(); ++slot) {
      if (session_of_[slot] == tokens.session_of[slot]) continue;
      session_of_[slot] = tokens.session_of[slot];
      stacks_[slot] = StackDistances();
    }
  }
  for (const Prefill& prefill : tokens.prefills) {
    for (std::size_t begin = 0; begin < prefill.tokens; begin += chunk_) {
      const std::size_t n = std::min(chunk_, prefill.tokens - begin);
      take(maker_.make(step.prefill_rows.subspan((prefill.first + begin) * columns_, n * columns_), {}, false), prefill.slot,
           prefill_counted);
      if (options_.phase == "prefill") end_unit(prefill_counted);
    }
  }
  if (options_.per_session) {
    for (std::uint32_t slot = 0; slot < options_.sessions; ++slot)
      take(maker_.make(step.decode_rows.subspan(slot * options_.q * columns_, options_.q * columns_),
                       std::span(tokens.active).subspan(slot * options_.q, options_.q), true),
           slot, decode_counted);
  } else {
    take(maker_.make(step.decode_rows, tokens.active, true), 0, decode_counted);
  }
  if (options_.phase != "prefill") end_unit(step.counted);
}

void RankJob::take(const Piece& piece, std::uint32_t slot, bool counted) {
  lookups_ += piece.rows.size();
  if (counted)
    for (std::size_t o = 0; o < maker_.asked().size(); ++o) asked_.lookups[piece.decode][o] += maker_.asked()[o];
  if (!stacks_.empty()) {
    distances_.resize(piece.rows.size());
    stacks_[options_.per_session ? slot : 0].step(piece.rows, distances_);
    if (counted) {
      first_hit_.resize(piece.rows.size());
      for (std::size_t i = 0; i < piece.rows.size(); ++i) {
        std::size_t c = limits_.size();
        if (distances_[i] != StackDistances::never)
          c = static_cast<std::size_t>(std::upper_bound(limits_.begin(), limits_.end(), distances_[i]) - limits_.begin());
        first_hit_[i] = static_cast<std::uint8_t>(c);
      }
      meter_->add(piece, first_hit_);
    }
  }
  if (trains_ && options_.train.empty() && !counted) counts_.add(piece.rows);
  if (!record_) return;
  rows_.insert(rows_.end(), piece.rows.begin(), piece.rows.end());
  pieces_.push_back({static_cast<std::uint32_t>(piece.rows.size()), piece.decode, counted, false});
}

void RankJob::end_unit(bool counted) {
  if (!counted) return;
  ++asked_.units;
  if (meter_) meter_->end_unit();
  if (record_) pieces_.back().unit_end = true;
}

void RankJob::train(std::span<const std::uint32_t> rows) { counts_.add(maker_.make(rows, {}, false).rows); }

void RankJob::end_steps() {
  if (!record_) return;
  // Dense ids in the order of first lookup: sort lookups by row, each row's first one gives its place.
  std::vector<std::uint32_t> distinct = rows_;
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  std::vector<std::uint32_t> id_of(distinct.size(), UINT32_MAX);
  const auto place = [&](std::uint32_t row) {
    return static_cast<std::size_t>(std::lower_bound(distinct.begin(), distinct.end(), row) - distinct.begin());
  };
  row_of_.reserve(distinct.size());
  for (std::uint32_t& row : rows_) {
    std::uint32_t& id = id_of[place(row)];
    if (id == UINT32_MAX) {
      id = static_cast<std::uint32_t>(row_of_.size());
      row_of_.push_back(row);
      order_of_.push_back(maker_.order_of(row));
    }
    row = id;
  }
  if (!trains_) return;
  for (const std::uint32_t row : counts_.hottest(options_.capacities.back())) {
    const std::size_t at = place(row);
    hottest_.push_back(at < distinct.size() && distinct[at] == row ? id_of[at] : UINT32_MAX);
  }
}

RankMisses RankJob::frame() const {
  RankMisses misses;
  misses.rank = rank_;
  misses.shard_rows = shard_.rows;
  misses.lookups = 0;
  for (const auto& phase : asked_.lookups)
    for (const std::uint64_t count : phase) *misses.lookups += count;
  if (options_.sample == 1) {
    if (record_)
      misses.distinct_rows = row_of_.size();
    else if (stacks_.size() == 1)
      misses.distinct_rows = stacks_[0].distinct();
  }
  return misses;
}

RankMisses RankJob::curve() const {
  RankMisses misses = frame();
  misses.curve = meter_->points(asked_, options_.phase != "prefill", options_.sample);
  return misses;
}

std::optional<double> RankJob::sampling_error() const {
  if (!meter_ || options_.sample == 1) return {};
  return meter_->sampling_error(asked_, options_.sample);
}

MissPoint RankJob::replay(const std::string& policy, std::uint64_t capacity) const {
  Meter meter({capacity}, maker_.orders());
  CachePolicyOptions of;
  of.ids = static_cast<std::uint32_t>(row_of_.size());
  of.capacity = static_cast<std::uint32_t>(std::min<std::uint64_t>(scaled(capacity), shard_.rows));
  of.hottest = hottest_;
  std::unique_ptr<CachePolicy> cache;
  std::vector<std::uint32_t> next;
  std::optional<BestHits> best;
  if (of.capacity > 0 && of.ids > 0) {
    if (policy == "belady") {
      next = next_uses(rows_, of.ids);
      best.emplace(next, of.capacity);
    } else {
      cache = make_cache_policy(policy, of);
    }
  }
  StampSet page_set;
  std::vector<std::uint8_t> hit, orders;
  std::vector<std::uint32_t> local, pages;
  std::size_t begin = 0;
  for (const StoredPiece& stored : pieces_) {
    const auto ids = std::span(rows_).subspan(begin, stored.rows);
    begin += stored.rows;
    hit.assign(ids.size(), 0);
    if (best) best->step(hit);
    if (cache) cache->step(ids, hit);
    if (!stored.counted) continue;
    page_set.begin(ids.size());
    orders.resize(ids.size());
    pages.resize(ids.size());
    local.resize(ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      local[i] = row_of_[ids[i]];
      orders[i] = order_of_[ids[i]];
      pages[i] = page_set.insert(local[i] / rows_per_page_);
      hit[i] = !hit[i];  // index of the smallest capacity that holds it, of one
    }
    meter.add({local, orders, pages, page_set.count(), stored.decode}, hit);
    if (stored.unit_end) meter.end_unit();
  }
  return meter.points(asked_, options_.phase != "prefill", options_.sample).front();
}

}  // namespace slacktier

#include "harness/misses/rank_job.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "harness/cache_policy.hpp"

namespace slacktier {
namespace {

constexpr std::uint64_t no_session = ~std::uint64_t{0};

bool is_static(const std::string& policy) { return policy == "static" || policy == "static-lru"; }

// Which share of the rows a capacity is followed with on its own, 0 if with all others: one capacity alone, and, of a
// sample, those that it would leave too few rows. A large cache's table would be larger than all that is in it.
double share_alone(const MissesOptions& options, std::uint64_t capacity) {
  constexpr std::uint64_t large = 4'000'000;
  if (capacity == 0 || options.per_session) return 0;
  if (options.sample == 1) {
    const auto sizes = options.capacities.size() - (options.capacities.front() == 0);
    return sizes == 1 && capacity <= large ? 1 : 0;
  }
  const double share = std::min(1.0, static_cast<double>(options.least_sampled_rows) / static_cast<double>(capacity));
  return share > options.sample ? share : 0;
}

// Samples of different shares err differently; a larger cache never has fewer hits.
void make_monotone(std::vector<MissPoint>& curve) {
  const auto rising = [](std::optional<double>& value, const std::optional<double>& before) {
    if (value && before) value = std::max(*value, *before);
  };
  const auto falling = [](std::optional<double>& value, const std::optional<double>& before) {
    if (value && before) value = std::min(*value, *before);
  };
  for (std::size_t c = 1; c < curve.size(); ++c) {
    const MissPoint& before = curve[c - 1];
    rising(curve[c].hit, before.hit);
    rising(curve[c].decode_hit, before.decode_hit);
    for (auto& [order, hit] : curve[c].hit_by_order) rising(hit, before.hit_by_order.at(order));
    falling(curve[c].misses_mean, before.misses_mean);
    falling(curve[c].pages_mean, before.pages_mean);
  }
}

double largest_share(const MissesOptions& options, bool curve) {
  double share = options.sample;
  for (const std::uint64_t capacity : options.capacities)
    if (curve) share = std::max(share, share_alone(options, capacity));
  return share;
}

}  // namespace

RankJob::RankJob(const MissesOptions& options, const TableSpec& spec, std::size_t layer_index, std::uint32_t rank,
                 bool curve, bool record)
    : options_(options),
      layer_index_(layer_index),
      rank_(rank),
      shard_(make_shard(spec, layer_index, options.shard_map, options.ranks, rank)),
      rows_per_page_(make_page_geometry(options.page_bytes, spec.row_bytes).rows_per_page),
      maker_(spec, shard_, rows_per_page_, largest_share(options, curve),
             options.sample == 1   ? PieceFacts::pages
             : options.per_session ? PieceFacts::none
                                   : PieceFacts::first),
      record_(record),
      columns_(spec.rows_per_token()),
      chunk_(options.chunk_tokens) {
  for (auto* counts : {&asked_.lookups, &asked_.first})
    for (auto& phase : *counts) phase.assign(maker_.orders().size(), 0);
  for (const std::string& policy : options.policies) trains_ = trains_ || is_static(policy);
  if (!curve) return;
  bool together = false;
  for (const std::uint64_t capacity : options.capacities) {
    const double share = share_alone(options, capacity);
    miniatures_.push_back(share > 0 ? std::make_unique<Miniature>(capacity, share, maker_.orders()) : nullptr);
    together = together || (capacity > 0 && share == 0);
    limits_.push_back(scaled(options.per_session ? capacity / options.sessions : capacity));
  }
  if (!together && options.capacities.front() > 0) return;
  meter_ = std::make_unique<Meter>(options.capacities, maker_.orders());
  if (together) stacks_.resize(options.per_session ? options.sessions : 1);
  session_of_.assign(stacks_.size(), no_session);
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

void RankJob::take(const Piece& given, std::uint32_t slot, bool counted) {
  for (std::size_t o = 0; counted && o < maker_.asked().size(); ++o) {
    asked_.lookups[given.decode][o] += maker_.asked()[o];
    asked_.first[given.decode][o] += maker_.first_asked()[o];
  }
  // Larger capacities take smaller shares.
  Piece piece = given;
  for (const auto& miniature : miniatures_)
    if (miniature) piece = miniature->take(piece, counted);
  if (options_.sample < 1) piece = sample_.of(piece, kept_of(options_.sample));
  lookups_ += piece.rows.size();
  if (meter_) follow_all(piece, slot, counted);
  if (trains_ && options_.train.empty() && !counted) counts_.add(piece.rows);
  if (!record_) return;
  rows_.insert(rows_.end(), piece.rows.begin(), piece.rows.end());
  pieces_.push_back({static_cast<std::uint32_t>(piece.rows.size()), piece.decode, counted, false});
}

void RankJob::follow_all(const Piece& piece, std::uint32_t slot, bool counted) {
  distances_.assign(piece.rows.size(), StackDistances::never);
  if (!stacks_.empty()) stacks_[options_.per_session ? slot : 0].step(piece.rows, distances_);
  if (!counted) return;
  first_hit_.resize(piece.rows.size());
  for (std::size_t i = 0; i < piece.rows.size(); ++i) {
    std::size_t c = limits_.size();
    if (distances_[i] != StackDistances::never)
      c = static_cast<std::size_t>(std::upper_bound(limits_.begin(), limits_.end(), distances_[i]) - limits_.begin());
    first_hit_[i] = static_cast<std::uint8_t>(c);
  }
  meter_->add(piece, first_hit_);
}

void RankJob::end_unit(bool counted) {
  if (!counted) return;
  ++asked_.units;
  if (meter_) meter_->end_unit();
  for (const auto& miniature : miniatures_)
    if (miniature) miniature->end_unit();
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
  const bool decode = options_.phase != "prefill";
  if (meter_) misses.curve = meter_->points(asked_, decode, options_.sample, options_.sample < 1);
  misses.curve.resize(options_.capacities.size());
  for (std::size_t c = 0; c < miniatures_.size(); ++c)
    if (miniatures_[c]) misses.curve[c] = miniatures_[c]->point(asked_, decode, options_.sample < 1);
  if (options_.sample < 1) make_monotone(misses.curve);
  return misses;
}

std::optional<double> RankJob::sampling_error() const {
  if (options_.sample == 1) return {};
  double error = 0;
  const std::vector<double> together =
      stacks_.empty() ? std::vector<double>() : meter_->sampling_errors(asked_, options_.sample);
  for (std::size_t c = 0; c < miniatures_.size(); ++c)
    error = std::max(error, miniatures_[c] ? miniatures_[c]->error(asked_) : together.empty() ? 0 : together[c]);
  return error;
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
  // A static cache holds rows that nothing has asked for yet.
  const bool know_first = options_.sample < 1 && !is_static(policy);
  Asked asked = asked_;
  if (!know_first)
    for (auto& phase : asked.first) phase.assign(phase.size(), 0);
  std::uint32_t ids_seen = 0;  // ids are numbered by their first lookups
  StampSet page_set;
  std::vector<std::uint8_t> hit, orders, first;
  std::vector<std::uint32_t> local, pages;
  std::size_t begin = 0;
  for (const StoredPiece& stored : pieces_) {
    const auto ids = std::span(rows_).subspan(begin, stored.rows);
    begin += stored.rows;
    hit.assign(ids.size(), 0);
    if (best) best->step(hit);
    if (cache) cache->step(ids, hit);
    first.clear();
    for (std::size_t i = 0; know_first && i < ids.size(); ++i) {
      first.push_back(ids[i] == ids_seen);
      ids_seen += first.back();
    }
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
    meter.add({local, orders, pages, page_set.count(), stored.decode, first}, hit);
    if (stored.unit_end) meter.end_unit();
  }
  return meter.points(asked, options_.phase != "prefill", options_.sample, options_.sample < 1).front();
}

}  // namespace slacktier

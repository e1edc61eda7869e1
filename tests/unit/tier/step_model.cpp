// The step core over random sequences against a slow, obvious model of it: policies, dedup switches, masks, faults, steps
// given up, late pages, resizes and skipped rows, in every order.
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/unit/tier/slow_policies.hpp"
#include "tier/directory.hpp"
#include "tier/step.hpp"

using namespace slacktier;
using namespace slacktier::testing;

namespace {

constexpr std::uint32_t columns = 5, tokens = 14, rows_per_column = 400, per_page = 15;
constexpr std::uint32_t reserved = 90;

// Five columns of 400 rows; the rank owns the end of column 2, and columns 3 and 4.
Shard small_shard() {
  Shard shard;
  shard.ranks = 2;
  shard.rank = 1;
  shard.rows = 250 + 400 + 400;
  shard.first = {0, 0, 950, 1200, 1600};
  shard.last = {0, 0, 1200, 1600, 2000};
  shard.local = {0, 0, 0, 250, 650};
  return shard;
}

struct Expected {
  LookupKind kind = LookupKind::zero;
  std::uint32_t row = 0;  // local
  bool fills = false;
};

// What one step shall look like.
struct Plan {
  std::vector<Expected> lookups;
  std::vector<std::uint32_t> pages;      // in the order of their reads
  std::vector<std::size_t> miss_lookup;  // of each miss: its lookup
  std::vector<std::int64_t> miss_read;   // its read, or -1: no buffer was left
  std::vector<bool> miss_fills;
  std::vector<std::pair<std::size_t, std::size_t>> reuses;  // lookup, miss
  LayerCounts counts;
};

class SlowCore {
 public:
  SlowCore(const std::string& policy, std::size_t slots, std::size_t buffers)
      : policy_(slow_policy(policy, slots, reserved)), slots_(slots), free_buffers_(buffers) {}

  bool row_dedup = true, page_dedup = true;
  std::vector<bool> seen;          // by local row; empty: all
  std::vector<std::uint32_t> hot;  // of policy static
  std::uint64_t stored_pages = 0;

  std::set<std::uint32_t> content() const {
    if (policy_) return policy_->content();
    return {hot.begin(), hot.begin() + static_cast<std::ptrdiff_t>(std::min(hot.size(), slots_))};
  }
  void resize(std::size_t slots) {
    slots_ = slots;
    if (policy_) policy_->resize(slots);
  }
  std::size_t slots() const { return slots_; }

  const Plan& plan(const std::vector<std::uint32_t>& rows, const std::vector<std::uint8_t>& active) {
    const Shard shard = small_shard();
    plan_ = Plan{};
    plan_.lookups.resize(rows.size());
    LayerCounts& counts = plan_.counts;
    if (policy_) policy_->begin_step();
    const std::set<std::uint32_t> held = content();
    std::map<std::uint32_t, std::size_t> first_miss;  // of a row
    std::vector<bool> repeated;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::size_t c = i % columns;
      if (!active.empty() && !active[i / columns]) continue;
      ++counts.lookups;
      if (rows[i] < shard.first[c] || rows[i] >= shard.last[c]) continue;
      ++counts.owned;
      const std::uint32_t row = rows[i] - shard.first[c] + shard.local[c];
      plan_.lookups[i].row = row;
      if (!seen.empty() && !seen[row]) {
        ++counts.skipped;
      } else if (held.contains(row)) {
        plan_.lookups[i].kind = LookupKind::hit;
        ++counts.hits;
        if (policy_) policy_->hit(row);
      } else if (first_miss.contains(row) && row_dedup) {
        plan_.reuses.emplace_back(i, first_miss[row]);
        ++counts.reused;
      } else {
        repeated.push_back(first_miss.contains(row));
        first_miss.try_emplace(row, plan_.miss_lookup.size());
        plan_.miss_lookup.push_back(i);
        ++counts.misses;
      }
    }
    place(repeated);
    std::map<std::uint32_t, std::int64_t> read_of;
    for (std::size_t m = 0; m < plan_.miss_lookup.size(); ++m) {
      Expected& lookup = plan_.lookups[plan_.miss_lookup[m]];
      const auto page = static_cast<std::uint32_t>(lookup.row / per_page % stored_pages);
      std::int64_t read = -1;
      if (page_dedup && read_of.contains(page)) {
        read = read_of[page];
      } else if (free_buffers_ > 0) {
        --free_buffers_;
        read = static_cast<std::int64_t>(plan_.pages.size());
        read_of[page] = read;
        plan_.pages.push_back(page);
      }
      plan_.miss_read.push_back(read);
      counts.unfilled += !plan_.miss_fills[m];
      counts.failed += read < 0;
      if (read >= 0) lookup = {LookupKind::miss, lookup.row, plan_.miss_fills[m]};
    }
    for (const auto& [lookup, m] : plan_.reuses) {
      counts.failed += plan_.miss_read[m] < 0;
      if (plan_.miss_read[m] >= 0) plan_.lookups[lookup].kind = LookupKind::miss;
    }
    counts.pages = static_cast<std::uint32_t>(plan_.pages.size());
    return plan_;
  }

  // The reads in `bad` failed; with `all` none came.
  const Plan& fail(const std::vector<bool>& bad, bool all) {
    std::vector<bool> lost(plan_.miss_lookup.size());
    for (std::size_t m = 0; m < lost.size(); ++m) {
      const std::int64_t read = plan_.miss_read[m];
      lost[m] = all || read < 0 || bad[static_cast<std::size_t>(read)];
      Expected& lookup = plan_.lookups[plan_.miss_lookup[m]];
      if (!lost[m] || lookup.kind != LookupKind::miss) continue;
      lookup.kind = LookupKind::zero;
      ++plan_.counts.failed;
    }
    for (const auto& [lookup, m] : plan_.reuses)
      if (lost[m] && plan_.lookups[lookup].kind == LookupKind::miss) {
        plan_.lookups[lookup].kind = LookupKind::zero;
        ++plan_.counts.failed;
      }
    lost_ = lost;
    return plan_;
  }

  void settle() {
    for (std::size_t m = 0; m < plan_.miss_lookup.size(); ++m) {
      if (!plan_.miss_fills[m]) continue;
      if (lost_[m])
        policy_->fail();
      else
        policy_->insert(plan_.lookups[plan_.miss_lookup[m]].row);
    }
  }
  void give_buffers_back(std::size_t n) { free_buffers_ += n; }

 private:
  void place(const std::vector<bool>& repeated) {
    plan_.miss_fills.assign(repeated.size(), false);
    if (!policy_) return;
    std::size_t empty = slots_ - policy_->size(), to_use = 0;
    for (std::size_t m = 0; m < repeated.size(); ++m) {
      if (repeated[m]) continue;
      if (empty > 0) {
        --empty;
        ++to_use;
        plan_.miss_fills[m] = true;
      } else {
        plan_.miss_fills[m] = policy_->evict();
        plan_.counts.evictions += plan_.miss_fills[m];
      }
    }
    for (; to_use > 0; --to_use) policy_->use_empty();
  }

  std::unique_ptr<SlowPolicy> policy_;  // none: static
  std::size_t slots_, free_buffers_;
  Plan plan_;
  std::vector<bool> lost_;
};

void compare_counts(const LayerCounts& got, const LayerCounts& expected) {
  REQUIRE(got.lookups == expected.lookups);
  REQUIRE(got.owned == expected.owned);
  REQUIRE(got.skipped == expected.skipped);
  REQUIRE(got.hits == expected.hits);
  REQUIRE(got.reused == expected.reused);
  REQUIRE(got.misses == expected.misses);
  REQUIRE(got.evictions == expected.evictions);
  REQUIRE(got.pages == expected.pages);
  REQUIRE(got.unfilled == expected.unfilled);
  REQUIRE(got.failed == expected.failed);
  REQUIRE(got.skipped + got.hits + got.reused + got.misses == got.owned);
}

// Descriptors say what the plan says, each by the place where the row really is.
void compare_lookups(const LayerCore& core, const Plan& plan, const std::map<std::uint32_t, std::uint32_t>& page_in) {
  const auto descriptors = core.descriptors();
  REQUIRE(descriptors.size() == plan.lookups.size());
  std::set<std::uint32_t> filled;
  for (std::size_t i = 0; i < descriptors.size(); ++i) {
    const Descriptor d = descriptors[i];
    const Expected& expected = plan.lookups[i];
    REQUIRE(d.kind() == expected.kind);
    if (d.kind() == LookupKind::hit) {
      REQUIRE(core.directory()->row_of(d.slot()) == expected.row);
      REQUIRE_FALSE(filled.contains(d.slot()));
    }
    if (d.kind() != LookupKind::miss) continue;
    REQUIRE(d.record() == expected.row % per_page);
    const std::uint64_t stored = core.options().fold.stored_pages;
    REQUIRE(page_in.at(d.buffer()) == expected.row / per_page % stored);
    REQUIRE((d.slot() != no_slot) == expected.fills);
    if (d.slot() != no_slot) REQUIRE(filled.insert(d.slot()).second);
  }
  for (std::size_t i = 0; i < descriptors.size(); ++i)
    if (descriptors[i].kind() == LookupKind::hit) REQUIRE_FALSE(filled.contains(descriptors[i].slot()));
}

struct Run {
  std::mt19937_64 random;
  LayerCoreOptions options;
  std::vector<std::uint64_t> seen_bits;
  std::unique_ptr<LayerCore> core;
  std::unique_ptr<SlowCore> model;
  std::map<std::uint64_t, std::vector<PageRead>> late;  // given up steps whose reads are still out there
  std::uint64_t abandoned = 0, faulty = 0, starved = 0, skipped = 0, hits = 0, evictions = 0;

  Run(const std::string& policy, std::uint64_t seed) : random(seed) {
    options.geometry = make_page_geometry(4096, 264);
    options.shard = small_shard();
    options.fold.stored_pages = seed % 3 == 0 ? 20 : options.geometry.pages(options.shard.rows);
    options.policy = policy;
    options.cache_rows = random() % (reserved + 1);
    options.cache_rows_reserved = reserved;
    options.max_lookups = tokens * columns;
    options.first_buffer = 1000;
    options.buffers = tokens * 3 + static_cast<std::uint32_t>(random() % 40);
    model = std::make_unique<SlowCore>(policy, options.cache_rows, options.buffers);
    model->stored_pages = options.fold.stored_pages;
    if (seed % 4 == 1) {
      seen_bits.resize((options.shard.rows + 63) / 64);
      for (auto& word : seen_bits) word = random() | random();
      for (std::uint64_t row = 0; row < options.shard.rows; ++row)
        model->seen.push_back((seen_bits[row / 64] >> (row % 64) & 1) != 0);
      options.seen = seen_bits.data();
    }
    core = std::make_unique<LayerCore>(options);
    if (policy == "static") {
      for (std::uint32_t r = 0; r < reserved; ++r) model->hot.push_back(r * 37 % 1050);
      hold();
    }
  }

  void hold() {
    std::vector<std::uint32_t> filled;
    if (!model->hot.empty()) core->hold(model->hot, filled);
  }

  std::vector<std::uint32_t> draw_rows() {
    std::vector<std::uint32_t> rows((1 + random() % tokens) * columns);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto skewed =
          static_cast<std::uint32_t>((random() % rows_per_column) * (random() % rows_per_column) / rows_per_column);
      rows[i] = static_cast<std::uint32_t>(i % columns) * rows_per_column + (random() % 3 ? skewed / 8 * 3 : skewed);
    }
    return rows;
  }

  void end_late(std::uint64_t epoch) {
    const std::vector<PageFault> faults(late[epoch].size(), random() % 2 ? PageFault::none : PageFault::io);
    REQUIRE_FALSE(core->on_pages(epoch, faults).publish);
    model->give_buffers_back(late[epoch].size());
    late.erase(epoch);
  }

  void change() {
    switch (random() % 6) {
      case 0: {
        const std::size_t slots = random() % 4 ? random() % (reserved + 1) : random() % 3;
        core->resize_cache(slots);
        model->resize(slots);
        hold();
        break;
      }
      case 1:
        model->row_dedup = random() % 4 != 0;
        model->page_dedup = random() % 4 != 0;
        core->set_dedup(model->row_dedup, model->page_dedup);
        break;
      default:
        break;
    }
    if (!late.empty() && random() % 9 == 0) end_late(late.begin()->first);
  }

  void step(std::uint64_t epoch) {
    const auto rows = draw_rows();
    std::vector<std::uint8_t> active(rows.size() / columns);
    for (auto& flag : active) flag = random() % 6 != 0;
    if (random() % 4 == 0) active.clear();
    core->on_indices(epoch, rows, active);
    const Plan& plan = model->plan(rows, active);
    compare_counts(core->counts(), plan.counts);
    const std::vector<PageRead> reads(core->reads().begin(), core->reads().end());
    REQUIRE(reads.size() == plan.pages.size());
    std::map<std::uint32_t, std::uint32_t> page_in;
    for (std::size_t r = 0; r < reads.size(); ++r) {
      REQUIRE(reads[r].page == plan.pages[r]);
      REQUIRE(reads[r].buffer >= options.first_buffer);
      REQUIRE(reads[r].buffer < options.first_buffer + options.buffers);
      REQUIRE(page_in.emplace(reads[r].buffer, plan.pages[r]).second);
      for (const auto& [other, held] : late)
        for (const auto& read : held) REQUIRE(read.buffer != reads[r].buffer);
    }
    compare_lookups(*core, plan, page_in);
    starved += plan.counts.failed > 0;
    skipped += plan.counts.skipped;
    hits += plan.counts.hits;
    evictions += plan.counts.evictions;

    REQUIRE(core->in_flight() == !reads.empty());
    const bool give_up = core->in_flight() && random() % 7 == 0;
    if (!late.empty() && random() % 9 == 0) end_late(late.rbegin()->first);  // while this step's are out there
    std::vector<bool> bad(reads.size());
    if (give_up) {
      REQUIRE(core->abandon(epoch));
      REQUIRE_FALSE(core->abandon(epoch));
      late[epoch] = reads;
      ++abandoned;
      model->fail(bad, true);
    } else {
      std::vector<PageFault> faults(reads.size(), PageFault::none);
      if (random() % 4 == 0)
        for (std::size_t r = 0; r < reads.size(); ++r)
          if (random() % 5 == 0) {
            faults[r] = random() % 2 ? PageFault::torn : PageFault::io;
            bad[r] = true;
          }
      const bool any = std::find(bad.begin(), bad.end(), true) != bad.end();
      const bool short_of_buffers = plan.counts.failed > 0;
      faulty += any;
      model->fail(bad, false);
      if (core->in_flight()) {
        REQUIRE_FALSE(core->on_pages(epoch + 1, faults).publish);
        const LayerCore::Release release = core->on_pages(epoch, faults);
        REQUIRE(release.publish);
        REQUIRE(release.status == (any                ? StepStatus::read_error
                                   : short_of_buffers ? StepStatus::no_buffers
                                                      : StepStatus::ok));
        REQUIRE_FALSE(core->on_pages(epoch, faults).publish);
        REQUIRE_FALSE(core->abandon(epoch));
      }
    }
    compare_counts(core->counts(), plan.counts);
    compare_lookups(*core, plan, page_in);
    core->settle();
    model->settle();
    if (!give_up) model->give_buffers_back(reads.size());
    std::set<std::uint32_t> content;
    for (std::uint32_t s = 0; s < core->directory()->reserved(); ++s)
      if (const auto row = core->directory()->row_of(s); row != UINT32_MAX) content.insert(row);
    REQUIRE(content == model->content());
    REQUIRE(content.size() <= model->slots());
  }
};

}  // namespace

TEST_CASE("random sequences give what the slow core gives", "[step_model]") {
  std::uint64_t abandoned = 0, faulty = 0, starved = 0, skipped = 0;
  for (const auto& policy : directory_policies()) {
    std::uint64_t hits = 0, evictions = 0;
    for (std::uint64_t seed = 1; seed <= 24; ++seed) {
      INFO(policy << " seed " << seed);
      Run run(policy, seed);
      for (std::uint64_t epoch = 1; epoch <= 150; ++epoch) {
        run.change();
        run.step(2 * epoch);
      }
      hits += run.hits;
      evictions += run.evictions;
      abandoned += run.abandoned;
      faulty += run.faulty;
      starved += run.starved;
      skipped += run.skipped;
    }
    REQUIRE(hits > 1000);
    if (policy != "static") REQUIRE(evictions > 1000);
  }
  REQUIRE(abandoned > 1000);
  REQUIRE(faulty > 1000);
  REQUIRE(starved > 100);
  REQUIRE(skipped > 1000);
}

// Replacement policies in their most obvious form: lists searched from end to end. What the fast ones are compared with.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace slacktier::testing {

// What a model is told and asked in a step: its hits first, then a place for each new row beyond the empty ones, then that
// the empty ones are used, then the new rows' arrival in order.
class SlowPolicy {
 public:
  virtual ~SlowPolicy() = default;
  virtual bool holds(std::uint32_t row) const = 0;
  virtual std::size_t size() const = 0;
  virtual void begin_step() { ++step_; }
  virtual void hit(std::uint32_t row) = 0;
  virtual void use_empty() {}  // a place that was empty was given to a new row
  virtual bool evict() = 0;    // frees one place for a new row; false when every row was touched in this step
  virtual void insert(std::uint32_t row) = 0;
  virtual void fail() {}  // a new row did not arrive
  virtual std::set<std::uint32_t> content() const = 0;
  virtual void resize(std::size_t slots) {
    begin_step();
    while (size() > slots)
      if (evict())
        stay_empty();
      else
        begin_step();
  }

 protected:
  virtual void stay_empty() {}  // the place freed last is not for a row
  int step_ = 0;
};

struct SlowEntry {
  std::uint32_t row = 0;
  int touched = 0;
  bool visited = false;
  int hits = 0;
};

using SlowList = std::list<SlowEntry>;  // newest first

inline SlowList::iterator find_row(SlowList& list, std::uint32_t row) {
  return std::find_if(list.begin(), list.end(), [&](const SlowEntry& e) { return e.row == row; });
}

class SlowListPolicy : public SlowPolicy {
 public:
  bool holds(std::uint32_t row) const override {
    return std::any_of(rows_.begin(), rows_.end(), [&](const SlowEntry& e) { return e.row == row; });
  }
  std::size_t size() const override { return rows_.size(); }
  void insert(std::uint32_t row) override { rows_.push_front({row, step_}); }
  std::set<std::uint32_t> content() const override {
    std::set<std::uint32_t> rows;
    for (const auto& entry : rows_) rows.insert(entry.row);
    return rows;
  }

 protected:
  SlowList rows_;
};

class SlowLru final : public SlowListPolicy {
 public:
  void hit(std::uint32_t row) override {
    rows_.erase(find_row(rows_, row));
    rows_.push_front({row, step_});
  }
  bool evict() override {
    if (rows_.empty() || rows_.back().touched == step_) return false;
    rows_.pop_back();
    return true;
  }
};

class SlowSieve final : public SlowListPolicy {
 public:
  void hit(std::uint32_t row) override {
    const auto entry = find_row(rows_, row);
    entry->visited = true;
    entry->touched = step_;
  }
  bool evict() override {
    for (std::size_t looks = 2 * rows_.size(); looks > 0; --looks) {
      if (!placed_) {
        hand_ = std::prev(rows_.end());
        placed_ = true;
      }
      const auto entry = hand_;
      if (entry == rows_.begin())
        placed_ = false;  // past the newest: from the oldest again
      else
        --hand_;
      if (entry->visited) {
        entry->visited = false;
        continue;
      }
      if (entry->touched == step_) continue;
      rows_.erase(entry);
      return true;
    }
    return false;
  }

  void resize(std::size_t slots) override {
    begin_step();
    while (rows_.size() > slots) {
      auto coldest = std::prev(rows_.end());
      for (auto entry = rows_.begin(); entry != rows_.end(); ++entry)  // newest first: of equals the oldest is the last
        if (entry->visited < coldest->visited || (entry->visited == coldest->visited && entry->touched <= coldest->touched))
          coldest = entry;
      if (placed_ && hand_ == coldest) {
        placed_ = coldest != rows_.begin();
        if (placed_) --hand_;
      }
      rows_.erase(coldest);
    }
  }

 private:
  SlowList::iterator hand_;
  bool placed_ = false;
};

// A ring of places with a bit each. A place that the hand finds with a clear bit is offered, and then has its bit set; the
// step takes it unless it has touched its row. Hits set their bits when the step is over. At most two turns a step.
class SlowClock final : public SlowPolicy {
 public:
  explicit SlowClock(std::size_t reserved) : ring_(reserved), looks_(2 * reserved) {}

  bool holds(std::uint32_t row) const override {
    return std::any_of(ring_.begin(), ring_.end(), [&](const Place& p) { return p.used && p.row == row; });
  }
  std::size_t size() const override {
    return static_cast<std::size_t>(std::count_if(ring_.begin(), ring_.end(), [](const Place& p) { return p.used; }));
  }
  void begin_step() override {
    looks_ = 2 * ring_.size();
    empties_ = 0;
    for (Place& place : ring_) {
      place.bit = place.bit || place.touched;
      place.touched = false;
    }
  }
  void hit(std::uint32_t row) override {
    for (Place& place : ring_)
      if (place.used && place.row == row) place.touched = true;
  }
  void use_empty() override {
    std::size_t at = 0;
    if (!failed_.empty()) {
      at = failed_.back();
      failed_.pop_back();
    } else {
      while (ring_[at].used || ring_[at].given) ++at;
    }
    ring_[at].given = true;
    given_.insert(given_.begin() + static_cast<std::ptrdiff_t>(empties_++), at);  // the first new rows get the empty places
  }
  bool evict() override {
    while (looks_ > 0) {
      Place& place = ring_[hand_];
      const std::size_t at = hand_;
      --looks_;
      hand_ = (hand_ + 1) % ring_.size();
      const bool passed = place.bit || !place.used;
      place.bit = !passed;
      if (passed || place.touched) continue;
      place.used = false;
      place.given = true;
      given_.push_back(at);
      return true;
    }
    return false;
  }
  void insert(std::uint32_t row) override {
    ring_[given_.front()] = {true, false, false, false, row};
    given_.pop_front();
  }
  void fail() override {
    failed_.push_back(given_.front());  // stays `given`: not to be taken as never used
    given_.pop_front();
  }
  void resize(std::size_t slots) override {
    // Places of failed rows are given up first, as many as are too many.
    while (!failed_.empty() && size() + failed_.size() > slots) {
      ring_[failed_.back()].given = false;
      failed_.pop_back();
    }
    SlowPolicy::resize(slots);
  }
  std::set<std::uint32_t> content() const override {
    std::set<std::uint32_t> rows;
    for (const auto& place : ring_)
      if (place.used) rows.insert(place.row);
    return rows;
  }

 private:
  void stay_empty() override {
    ring_[given_.back()].given = false;
    given_.pop_back();
  }

  struct Place {
    bool used = false, bit = false, given = false, touched = false;
    std::uint32_t row = 0;
  };
  std::vector<Place> ring_;
  std::size_t hand_ = 0, looks_, empties_ = 0;
  std::deque<std::size_t> given_;
  std::vector<std::size_t> failed_;
};

// Algorithm 1 of the S3-FIFO paper, one eviction a call.
class SlowS3Fifo final : public SlowPolicy {
 public:
  explicit SlowS3Fifo(std::size_t slots, std::size_t reserved) : ghosts_most_(main_of(reserved)) { set_size(slots); }

  bool holds(std::uint32_t row) const override {
    const auto same = [&](const SlowEntry& e) { return e.row == row; };
    return std::any_of(small_.begin(), small_.end(), same) || std::any_of(main_.begin(), main_.end(), same);
  }
  std::size_t size() const override { return small_.size() + main_.size(); }
  void begin_step() override {
    ++step_;
    expected_ = 0;
  }
  void hit(std::uint32_t row) override {
    auto entry = find_row(small_, row);
    if (entry == small_.end()) entry = find_row(main_, row);
    if (entry->touched != step_) entry->hits = std::min(entry->hits + 1, 3);
    entry->touched = step_;
  }
  void use_empty() override { ++expected_; }
  bool evict() override {
    const bool from_small = small_.size() + expected_ >= small_least_;
    const bool done = from_small ? evict_small() || evict_main() : evict_main() || evict_small();
    expected_ += done;
    return done;
  }
  void insert(std::uint32_t row) override {
    --expected_;
    bool known = false;
    for (std::size_t g = 0; g < ghosts_.size(); ++g)
      if (ghosts_[g] == row) {
        known = g < main_most_;
        ghosts_[g].reset();
      }
    (known ? main_ : small_).push_front({row, step_});
  }
  void resize(std::size_t slots) override {
    set_size(slots);
    begin_step();
    while (size() > slots) {
      const bool from_small = !small_.empty() && (small_.size() > small_least_ || main_.empty());
      SlowList& list = from_small ? small_ : main_;
      auto coldest = std::prev(list.end());
      for (auto entry = list.begin(); entry != list.end(); ++entry)  // newest first: of equals the oldest is the last
        if (entry->hits < coldest->hits || (entry->hits == coldest->hits && entry->touched <= coldest->touched))
          coldest = entry;
      if (from_small) {
        ghosts_.push_front(coldest->row);
        if (ghosts_.size() > ghosts_most_) ghosts_.pop_back();
      }
      list.erase(coldest);
    }
  }
  std::set<std::uint32_t> content() const override {
    std::set<std::uint32_t> rows;
    for (const auto* list : {&small_, &main_})
      for (const auto& entry : *list) rows.insert(entry.row);
    return rows;
  }

 private:
  static std::size_t main_of(std::size_t slots) { return slots - std::min(slots, std::max<std::size_t>(1, slots / 10)); }
  void set_size(std::size_t slots) {
    main_most_ = main_of(slots);
    small_least_ = slots - main_most_;
  }
  bool evict_small() {
    for (std::size_t looks = small_.size(); looks > 0; --looks) {
      SlowEntry tail = small_.back();
      small_.pop_back();
      if (tail.hits > 1) {
        tail.hits = 0;
        main_.push_front(tail);
        if (main_.size() > main_most_ && evict_main()) return true;
      } else if (tail.touched == step_) {
        small_.push_front(tail);
      } else {
        ghosts_.push_front(tail.row);
        if (ghosts_.size() > ghosts_most_) ghosts_.pop_back();
        return true;
      }
    }
    return false;
  }
  bool evict_main() {
    for (std::size_t looks = 4 * main_.size(); looks > 0; --looks) {
      SlowEntry tail = main_.back();
      main_.pop_back();
      if (tail.hits == 0 && tail.touched != step_) return true;
      tail.hits = std::max(tail.hits - 1, 0);
      main_.push_front(tail);
    }
    return false;
  }

  SlowList small_, main_;
  std::deque<std::optional<std::uint32_t>> ghosts_;  // newest first
  std::size_t ghosts_most_, main_most_ = 0, small_least_ = 0, expected_ = 0;
};

inline std::unique_ptr<SlowPolicy> slow_policy(const std::string& policy, std::size_t slots, std::size_t reserved) {
  if (policy == "clock") return std::make_unique<SlowClock>(reserved);
  if (policy == "lru") return std::make_unique<SlowLru>();
  if (policy == "sieve") return std::make_unique<SlowSieve>();
  if (policy == "s3fifo") return std::make_unique<SlowS3Fifo>(slots, reserved);
  return nullptr;
}

}  // namespace slacktier::testing

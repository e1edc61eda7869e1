// Hit rates of real sessions by the most obvious means: a simulator written apart from the tier and the harness, which
// shares no code with them. It exists to be compared with them, so it is kept slow and plain.
//
// What it takes as given: the session and token map files, Engram's published constants (multipliers, primes above
// 16,000,000, orders 2 to 4 with 8 heads each), contiguous shards of ceil(rows / 4) rows, and this definition of the cache:
//   - CLOCK: empty slots are filled first, in slot order. A new row enters with its reference bit clear, a hit sets it. The
//   hand
//     passes over the slots in turn: it clears set bits and evicts the first row whose bit is clear. Rows touched in the
//     current step are pinned: the hand skips them and leaves their bits alone. Nothing to evict: the row is not cached.
//   - A step looks all its rows up, then gives its misses slots in order. A row that misses twice in a step is read once;
//     its later requests are "reused", which are no cache hits.
//   - A step's prefills come first, session after session, in pieces of at most B tokens, each of which is a step to the
//   cache.
#pragma once

#include <zstd.h>

#include <array>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace slow {

inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// ---------------------------------------------------------------------------------------------------------------- sessions

using Context = std::array<std::uint32_t, 4>;  // canonical ids, current token first

struct Token {
  Context context;
  bool decode;  // else prefill
};
using Tokens = std::vector<Token>;  // of one session

// Canonical id of every raw id.
inline std::vector<std::uint32_t> read_token_map(const std::string& path) {
  const std::string bytes = read_file(path);
  std::vector<std::uint32_t> map;
  for (std::size_t i = 0; i + 4 <= bytes.size(); i += 4) {
    std::uint32_t value = 0;
    for (std::size_t b = 4; b-- > 0;) value = value * 256 + static_cast<unsigned char>(bytes[i + b]);
    map.push_back(value);
  }
  return map;
}

// The sessions of a .jsonl.zst file. Looks for nothing but `"role":"` and `"ids":[`, which the files hold in this order.
inline std::vector<Tokens> read_sessions(const std::string& path, const std::vector<std::uint32_t>& token_map) {
  const std::string packed = read_file(path);
  std::string text(ZSTD_getFrameContentSize(packed.data(), packed.size()), '\0');
  if (ZSTD_decompress(text.data(), text.size(), packed.data(), packed.size()) != text.size()) throw std::runtime_error(path);
  const std::uint32_t pad = token_map[2];
  std::vector<Tokens> sessions;
  for (std::size_t line = 0; line < text.size(); line = text.find('\n', line) + 1) {
    const std::size_t line_end = text.find('\n', line);
    Tokens session;
    Context context{pad, pad, pad, pad};
    std::size_t last_decode = 0;
    for (std::size_t at = text.find("\"role\":\"", line); at < line_end; at = text.find("\"role\":\"", at)) {
      at += 8;
      const bool decode = text.compare(at, 10, "assistant\"") == 0;
      at = text.find("\"ids\":[", at) + 7;
      while (text[at] != ']') {
        std::uint32_t id = 0;
        for (; text[at] >= '0' && text[at] <= '9'; ++at) id = id * 10 + static_cast<std::uint32_t>(text[at] - '0');
        if (text[at] == ',') ++at;
        context = {token_map.at(id), context[0], context[1], context[2]};
        session.push_back({context, decode});
        if (decode) last_decode = session.size();
      }
    }
    session.resize(last_decode);  // no model reads what follows
    if (!session.empty()) sessions.push_back(session);
  }
  return sessions;
}

struct Step {
  std::vector<std::vector<Context>> prefills;
  std::vector<Context> decoded;
};

// B sessions side by side, one decoded token each a step.
inline std::vector<Step> interleave(const std::vector<Tokens>& sessions, std::size_t b, std::size_t step_count) {
  std::vector<const Tokens*> slot(b, nullptr);
  std::vector<std::size_t> position(b, 0);
  std::size_t next_session = 0;
  std::vector<Step> steps(step_count);
  for (Step& step : steps) {
    for (std::size_t s = 0; s < b; ++s) {
      if (slot[s] == nullptr || position[s] == slot[s]->size()) {
        slot[s] = &sessions.at(next_session++);
        position[s] = 0;
      }
      std::vector<Context> prefill;
      while (!(*slot[s])[position[s]].decode) prefill.push_back((*slot[s])[position[s]++].context);
      if (!prefill.empty()) step.prefills.push_back(prefill);
      step.decoded.push_back((*slot[s])[position[s]++].context);
    }
  }
  return steps;
}

// -------------------------------------------------------------------------------------------------------------------- rows

constexpr std::array<std::array<std::uint64_t, 4>, 2> multipliers{
    {{76632096046245u, 4839876093313u, 35959672319349u, 73987337458391u},
     {67716810739261u, 51510806800915u, 30921347202721u, 82619226485591u}}};

// The 48 first primes above 16,000,000, by trial division; 24 a layer.
inline std::vector<std::uint64_t> head_primes() {
  std::vector<std::uint64_t> primes;
  for (std::uint64_t n = 16000000; primes.size() < 48; ++n) {
    bool prime = true;
    for (std::uint64_t d = 2; d * d <= n && prime; ++d) prime = n % d != 0;
    if (prime) primes.push_back(n);
  }
  return primes;
}

__extension__ typedef unsigned __int128 Wide;  // products stay exact whatever their size

inline std::array<std::uint64_t, 24> rows_of(const Context& context, std::size_t layer,
                                             const std::vector<std::uint64_t>& primes) {
  std::array<std::uint64_t, 24> rows{};
  Wide mix = static_cast<Wide>(context[0]) * multipliers[layer][0];
  std::uint64_t before = 0;
  for (std::size_t head = 0; head < 24; ++head) {
    if (head % 8 == 0) {  // the next order looks one token further back
      const std::size_t back = head / 8 + 1;
      mix ^= static_cast<Wide>(context[back]) * multipliers[layer][back];
    }
    const std::uint64_t prime = primes[layer * 24 + head];
    rows[head] = static_cast<std::uint64_t>(mix % prime) + before;
    before += prime;
  }
  return rows;
}

// ------------------------------------------------------------------------------------------------------------------- cache

enum class Outcome { hit, reused, miss };

class Clock {
 public:
  explicit Clock(std::size_t capacity) : ring_(capacity) {}

  void begin_step() {
    ++step_;
    missed_.clear();
    missed_in_order_.clear();
  }
  Outcome look_up(std::uint64_t row) {
    const auto found = slot_of_.find(row);
    if (found != slot_of_.end()) {
      ring_[found->second].referenced = true;
      ring_[found->second].touched = step_;
      return Outcome::hit;
    }
    if (!missed_.insert(row).second) return Outcome::reused;
    missed_in_order_.push_back(row);
    return Outcome::miss;
  }
  void end_step() {
    for (std::uint64_t row : missed_in_order_) insert(row);
  }

 private:
  struct Slot {
    std::uint64_t row = 0;
    bool referenced = false;
    std::uint64_t touched = 0;  // step
  };

  void insert(std::uint64_t row) {
    std::size_t slot = used_;
    if (used_ < ring_.size()) {
      ++used_;
    } else {
      slot = victim();
      if (slot == ring_.size()) return;
      slot_of_.erase(ring_[slot].row);
    }
    ring_[slot] = {row, false, step_};
    slot_of_[row] = slot;
  }
  // Two turns: the first may do no more than clear bits.
  std::size_t victim() {
    for (std::size_t seen = 0; seen < 2 * ring_.size(); ++seen) {
      const std::size_t slot = hand_;
      hand_ = (hand_ + 1) % ring_.size();
      if (ring_[slot].touched == step_) continue;
      if (!ring_[slot].referenced) return slot;
      ring_[slot].referenced = false;
    }
    return ring_.size();
  }

  std::vector<Slot> ring_;
  std::size_t used_ = 0, hand_ = 0;
  std::uint64_t step_ = 0;
  std::unordered_map<std::uint64_t, std::size_t> slot_of_;
  std::unordered_set<std::uint64_t> missed_;
  std::vector<std::uint64_t> missed_in_order_;
};

// -------------------------------------------------------------------------------------------------------------- hit counts

struct Counts {
  std::uint64_t lookups = 0, hits = 0, reused = 0;
};
using Table = std::array<std::array<std::array<Counts, 3>, 2>, 4>;  // [rank][layer][order - 2]

// Counts of the decode lookups of the steps from `warm_up` on.
inline Table hit_counts(const std::vector<Step>& steps, std::size_t warm_up, std::size_t b, std::size_t rows_per_cache) {
  const std::vector<std::uint64_t> primes = head_primes();
  Table table{};
  for (std::size_t layer = 0; layer < 2; ++layer) {
    std::uint64_t total = 0;
    for (std::size_t head = 0; head < 24; ++head) total += primes[layer * 24 + head];
    if (total != (layer == 0 ? 384006168u : 384016682u)) throw std::runtime_error("wrong primes");
    const std::uint64_t rows_per_rank = (total + 3) / 4;
    std::vector<Clock> ranks(4, Clock(rows_per_cache));

    const auto look_up = [&](const std::vector<Context>& tokens, bool count) {
      for (Clock& cache : ranks) cache.begin_step();
      for (const Context& context : tokens) {
        const auto rows = rows_of(context, layer, primes);
        for (std::size_t head = 0; head < 24; ++head) {
          const auto rank = static_cast<std::size_t>(rows[head] / rows_per_rank);
          const Outcome outcome = ranks[rank].look_up(rows[head]);
          if (!count) continue;
          Counts& counts = table[rank][layer][head / 8];
          ++counts.lookups;
          if (outcome == Outcome::hit) ++counts.hits;
          if (outcome == Outcome::reused) ++counts.reused;
        }
      }
      for (Clock& cache : ranks) cache.end_step();
    };
    for (std::size_t s = 0; s < steps.size(); ++s) {
      for (const std::vector<Context>& prefill : steps[s].prefills) {
        for (std::size_t begin = 0; begin < prefill.size(); begin += b) {
          const auto from = prefill.begin() + static_cast<std::ptrdiff_t>(begin);
          const auto to = prefill.size() - begin > b ? from + static_cast<std::ptrdiff_t>(b) : prefill.end();
          look_up({from, to}, false);
        }
      }
      look_up(steps[s].decoded, s >= warm_up);
    }
  }
  return table;
}

}  // namespace slow

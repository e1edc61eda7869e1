// What warming, guessing, packing and handing over are worth beside a cache: LRU over sessions side by side.
#include <algorithm>
#include <cstdint>
#include <deque>
#include <numeric>
#include <unordered_map>

#include "harness/access/questions.hpp"
#include "harness/stack_distances.hpp"

namespace slacktier {
namespace {

// Sessions side by side: what each asks for in turn, without a step's order mattering.
struct Turnwise {
  struct Slot {
    std::size_t session = 0, token = 0, end = 0;
  };
  const Corpus& corpus;
  std::deque<std::size_t> waiting;
  std::vector<Slot> slots;
  Turnwise(const Corpus& of, std::size_t at_once, std::vector<std::size_t> sessions)
      : corpus(of), waiting(sessions.begin(), sessions.end()), slots(at_once) {}
  // Calls prefill(token) and decode(token, session's first token) until a session is wanted and none is left.
  template <class Prefill, class Decode>
  void run(Prefill&& prefill, Decode&& decode) {
    for (;;)
      for (Slot& slot : slots) {
        while (slot.token == slot.end) {
          if (waiting.empty()) return;
          slot.session = waiting.front();
          waiting.pop_front();
          slot.token = corpus.sessions[slot.session].first;
          slot.end = slot.token + corpus.sessions[slot.session].tokens;
        }
        while (slot.token < slot.end && !corpus.decode[slot.token]) prefill(slot.token++);
        if (slot.token < slot.end) {
          decode(slot.token, corpus.sessions[slot.session].first);
          ++slot.token;
        }
      }
  }
};

class Lru {
 public:
  Lru(const Corpus& corpus, std::uint64_t rows_of_all_heads)
      : limit_(static_cast<std::uint32_t>(rows_of_all_heads * corpus.orders.size() / corpus.columns)) {}
  // Looks a token's rows up; the number held.
  std::size_t look_up(std::span<const std::uint32_t> rows) {
    distances_.resize(rows.size());
    stack_.step(rows, distances_);
    return static_cast<std::size_t>(
        std::count_if(distances_.begin(), distances_.end(), [&](std::uint32_t d) { return d < limit_; }));
  }
  bool held(std::size_t i) const { return distances_[i] < limit_; }  // of the last look_up

 private:
  StackDistances stack_;
  std::uint32_t limit_;
  std::vector<std::uint32_t> distances_;
};

std::vector<std::size_t> all_sessions(const Corpus& corpus) {
  std::vector<std::size_t> all(corpus.sessions.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

}  // namespace

Table answer_warming(const Corpus& corpus, const AccessOptions& options) {
  Table table;
  table.title = "Warming the cache on other groups' sessions: decode hits of the rest (LRU)";
  table.columns = {column("cache", "", Align::left), column("decode hit", "%"), column("of its first tenth", "%")};
  // Half of the groups warm, the others are measured.
  std::unordered_map<std::string, std::size_t> number;
  std::vector<std::size_t> warm, rest;
  for (std::size_t s = 0; s < corpus.sessions.size(); ++s) {
    const std::size_t group = number.emplace(corpus.sessions[s].group, number.size()).first->second;
    (group % 2 == 0 ? warm : rest).push_back(s);
  }
  if (rest.empty()) {
    table.footnotes = {"all sessions are of one group"};
    return table;
  }
  const std::size_t at_once = std::min<std::size_t>(options.sessions, rest.size());
  for (const bool warmed : {false, true}) {
    Lru cache(corpus, options.cache_rows);
    if (warmed)
      for (const std::size_t s : warm)
        each_token(corpus.sessions[s], [&](std::size_t t) { cache.look_up(corpus.rows_of(t)); });
    std::vector<std::size_t> hits;
    Turnwise(corpus, at_once, rest)
        .run([&](std::size_t t) { cache.look_up(corpus.rows_of(t)); },
             [&](std::size_t t, std::size_t) { hits.push_back(cache.look_up(corpus.rows_of(t))); });
    const auto share = [&](std::size_t n) {
      return percent(std::accumulate(hits.begin(), hits.begin() + static_cast<std::ptrdiff_t>(n), std::size_t{0}),
                     n * corpus.orders.size());
    };
    table.rows.push_back({Cell(warmed ? fmt::format("warmed on {} sessions of other groups", warm.size()) : "cold"),
                          Cell::number(share(hits.size()), 1), Cell::number(share(hits.size() / 10), 1)});
  }
  table.footnotes = {fmt::format("{} groups", number.size())};
  return table;
}

Table answer_prefetch(const Corpus& corpus, const AccessOptions& options) {
  Table table;
  table.title = "Prefetching the rows of a guessed next token: what followed the last tokens earlier in the session";
  table.columns = {column("tokens that match", ""), column("guessed", "%"),         column("right", "%"),
                   column("misses recovered", "%"), column("extra rows read", "%"), column("paper", "%", Align::left)};
  const std::size_t n = corpus.orders.size();
  for (const std::size_t match : {2u, 3u}) {
    Lru cache(corpus, options.cache_rows);
    std::unordered_map<std::uint64_t, std::size_t>
        last;  // hash of session and matched tokens -> token behind their last place
    const auto key = [&](std::size_t t, std::size_t first) {
      std::uint64_t h = first * 0x9E3779B97F4A7C15u;
      for (std::size_t i = 0; i < match; ++i) h = (h ^ corpus.ids[t - i]) * 0xD6E8FEB86659FD93u + (h >> 29);
      return h;
    };
    const auto learn = [&](std::size_t t, std::size_t first) {
      if (t > first + match - 1) last[key(t - 1, first)] = t;
    };
    std::uint64_t tokens = 0, guessed = 0, right = 0, misses = 0, recovered = 0, extra = 0;
    // Prefill tokens' sessions are found by their place.
    std::vector<std::size_t> starts;
    for (const CorpusSession& session : corpus.sessions) starts.push_back(session.first);
    const auto start_of = [&](std::size_t t) { return *(std::upper_bound(starts.begin(), starts.end(), t) - 1); };
    Turnwise(corpus, std::min<std::size_t>(options.sessions, corpus.sessions.size()), all_sessions(corpus))
        .run(
            [&](std::size_t t) {
              learn(t, start_of(t));
              cache.look_up(corpus.rows_of(t));
            },
            [&](std::size_t t, std::size_t first) {
              ++tokens;
              std::size_t guess = 0;
              if (t > first + match - 1)
                if (const auto found = last.find(key(t - 1, first)); found != last.end()) guess = found->second;
              const std::size_t missed = n - cache.look_up(corpus.rows_of(t));
              misses += missed;
              if (guess > 0) {
                ++guessed;
                if (corpus.ids[guess] == corpus.ids[t]) {
                  ++right;
                  recovered += missed;
                } else {
                  extra += n;
                }
              }
              learn(t, first);
            });
    table.rows.push_back({Cell::count(static_cast<std::int64_t>(match)), Cell::number(percent(guessed, tokens), 1),
                          Cell::number(percent(right, guessed), 1), Cell::number(percent(recovered, misses), 1),
                          Cell::number(percent(extra, tokens * n), 1),
                          Cell(paper_text(options, "speculative_prefetch_recovered_percent"))});
  }
  table.footnotes = {"a wrong guess reads all its rows, at most: those in the cache are not left out"};
  return table;
}

Table answer_packing(const Corpus& corpus, const AccessOptions& options) {
  Table table;
  table.title = "Packing the rows of longest n-grams that occurred together into one page, learnt from the training half";
  table.columns = {column("contexts packed", "", Align::left), column("contexts", "M"), column("pages saved", "%"),
                   column("paper", "%", Align::left)};
  const std::size_t longest = corpus.orders.size() - 1, heads = corpus.heads[longest];
  for (const std::uint8_t least : {std::uint8_t{1}, std::uint8_t{2}, std::uint8_t{4}}) {
    std::unordered_map<std::uint32_t, std::uint8_t> times;
    for (std::size_t s = 0; s < corpus.sessions.size(); s += 2)
      each_token(corpus.sessions[s], [&](std::size_t t) {
        std::uint8_t& count = times[corpus.rows_of(t)[longest]];
        count = static_cast<std::uint8_t>(std::min(200, count + 1));
      });
    std::uint64_t contexts = 0, pages = 0, saved = 0;
    for (const auto& [row, count] : times) contexts += count >= least;
    Lru cache(corpus, options.cache_rows);
    std::vector<std::size_t> test;
    for (std::size_t s = 1; s < corpus.sessions.size(); s += 2) test.push_back(s);
    Turnwise(corpus, std::min<std::size_t>(options.sessions, test.size()), test)
        .run([&](std::size_t t) { cache.look_up(corpus.rows_of(t)); },
             [&](std::size_t t, std::size_t) {
               cache.look_up(corpus.rows_of(t));
               for (std::size_t o = 0; o < corpus.orders.size(); ++o)
                 if (!cache.held(o)) pages += corpus.heads[o];
               if (cache.held(longest)) return;
               const auto found = times.find(corpus.rows_of(t)[longest]);
               if (found != times.end() && found->second >= least) saved += heads - 1;
             });
    table.rows.push_back({Cell(fmt::format("seen {} times or more", least)),
                          Cell::number(static_cast<double>(contexts) / 1e6, 2), Cell::number(percent(saved, pages), 1),
                          Cell(paper_text(options, "offline_packing_saved_percent"))});
  }
  return table;
}

Table answer_handoff(const Corpus& corpus, const AccessOptions& options) {
  Table table;
  table.title = "Prefill elsewhere: decode hits of a cache that gets the prompt's rows handed over, or does not (LRU)";
  table.columns = {column("cache", "", Align::left), column("decode hit", "%"), column("paper", "%", Align::left)};
  for (const bool handed : {true, false}) {
    Lru cache(corpus, options.cache_rows);
    std::uint64_t lookups = 0, hits = 0;
    Turnwise(corpus, std::min<std::size_t>(options.sessions, corpus.sessions.size()), all_sessions(corpus))
        .run(
            [&](std::size_t t) {
              if (handed) cache.look_up(corpus.rows_of(t));
            },
            [&](std::size_t t, std::size_t) {
              lookups += corpus.orders.size();
              hits += cache.look_up(corpus.rows_of(t));
            });
    table.rows.push_back({Cell(handed ? "prompt's rows handed over" : "decode's own rows only"),
                          Cell::number(percent(hits, lookups), 1),
                          Cell(handed && options.workload == "agent"
                                   ? paper_text(options, "prefill_to_decode_handoff_hit_percent", "v41_agent")
                                   : "")});
  }
  return table;
}

}  // namespace slacktier

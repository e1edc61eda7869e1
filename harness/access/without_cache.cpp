// Coverage, novelty and reuse at once: no cache takes part.
#include <algorithm>
#include <cstdint>
#include <unordered_map>

#include "harness/access/questions.hpp"
#include "harness/row_counts.hpp"

namespace slacktier {
namespace {

class Bits {
 public:
  explicit Bits(std::uint64_t rows) : words_((rows + 63) / 64, 0) {}
  bool test(std::uint32_t row) const { return (words_[row / 64] >> (row % 64)) & 1; }
  bool set(std::uint32_t row) {
    const bool fresh = !test(row);
    words_[row / 64] |= std::uint64_t{1} << (row % 64);
    return fresh;
  }

 private:
  std::vector<std::uint64_t> words_;
};

}  // namespace

Table answer_coverage(const Corpus& corpus, const AccessOptions& options) {
  Table table;
  table.title = "Decode lookups whose row is among the training half's hottest";
  table.columns = {column("order", ""), column("1 M rows", "%"), column("4 M", "%"),
                   column("20 M", "%"), column("all seen", "%"), column("paper", "%", Align::left)};
  for (std::size_t o = 0; o < corpus.orders.size(); ++o) {
    RowCounts counts;
    std::vector<std::uint32_t> rows;
    Bits seen(corpus.table_rows);
    for (std::size_t s = 0; s < corpus.sessions.size(); ++s) {
      if (in_test(s)) continue;
      rows.clear();
      each_token(corpus.sessions[s], [&](std::size_t t) {
        rows.push_back(corpus.rows_of(t)[o]);
        seen.set(rows.back());
      });
      counts.add(rows);
    }
    std::vector<Cell> cells = {Cell::count(corpus.orders[o])};
    for (const std::uint64_t total : {1'000'000u, 4'000'000u, 20'000'000u, 0u}) {
      Bits held(corpus.table_rows);
      // The heads of all orders share the rows.
      if (total > 0)
        for (const std::uint32_t row : counts.hottest(total / corpus.columns)) held.set(row);
      std::uint64_t lookups = 0, hits = 0;
      for (std::size_t s = 0; s < corpus.sessions.size(); ++s)
        if (in_test(s))
          each_token(corpus.sessions[s], [&](std::size_t t) {
            if (!corpus.decode[t]) return;
            ++lookups;
            hits += total > 0 ? held.test(corpus.rows_of(t)[o]) : seen.test(corpus.rows_of(t)[o]);
          });
      cells.push_back(Cell::number(percent(hits, lookups), 1));
    }
    cells.push_back(Cell(paper_text(options, "static_coverage_by_order_percent", std::to_string(corpus.orders[o]))));
    table.rows.push_back(std::move(cells));
  }
  table.footnotes = {"rows of the table as a whole, shared evenly by its heads"};
  return table;
}

Table answer_never_seen(const Corpus& corpus, const AccessOptions& options) {
  Table table;
  table.title = "Decode lookups whose row neither the training half nor the session's own prompt has asked for";
  table.columns = {column("order", "", Align::left), column("not in the training half", "%"),
                   column("nor earlier in the session", "%"), column("paper", "%", Align::left)};
  Bits trained(corpus.table_rows);
  for (std::size_t s = 0; s < corpus.sessions.size(); ++s)
    if (!in_test(s))
      each_token(corpus.sessions[s], [&](std::size_t t) {
        for (const std::uint32_t row : corpus.rows_of(t)) trained.set(row);
      });
  const std::size_t n = corpus.orders.size();
  std::vector<std::uint64_t> fresh(n + 1, 0), alone(n + 1, 0);
  std::uint64_t decoded = 0;
  for (std::size_t s = 0; s < corpus.sessions.size(); ++s) {
    if (!in_test(s)) continue;
    std::unordered_map<std::uint32_t, bool> own;
    each_token(corpus.sessions[s], [&](std::size_t t) {
      decoded += corpus.decode[t];
      for (std::size_t o = 0; o < n; ++o) {
        const std::uint32_t row = corpus.rows_of(t)[o];
        if (trained.test(row)) continue;
        const bool first = own.emplace(row, true).second;
        if (!corpus.decode[t]) continue;
        ++fresh[o];
        ++fresh[n];
        alone[o] += first;
        alone[n] += first;
      }
    });
  }
  for (std::size_t o = 0; o <= n; ++o) {
    const std::uint64_t lookups = o < n ? decoded : decoded * n;
    table.rows.push_back({o < n ? Cell(fmt::format("{}-gram", corpus.orders[o])) : Cell("all"),
                          Cell::number(percent(fresh[o], lookups), 1), Cell::number(percent(alone[o], lookups), 1),
                          o < n ? Cell() : Cell(paper_text(options, "never_seen_rows_percent"))});
  }
  return table;
}

Table answer_distinct(const Corpus& corpus, const AccessOptions& options) {
  Table table;
  table.title = "Different rows among those looked up at once";
  table.columns = {column("window", "", Align::left), column("distinct", "%"), column("paper", "%", Align::left)};
  const auto share = [&](auto next_window) {
    std::uint64_t lookups = 0, different = 0;
    std::vector<std::uint32_t> rows;
    while (next_window(rows)) {
      lookups += rows.size();
      std::sort(rows.begin(), rows.end());
      different += static_cast<std::uint64_t>(std::unique(rows.begin(), rows.end()) - rows.begin());
    }
    return percent(different, lookups);
  };
  // 256 sessions' decode tokens at once: each session's are walked through at its own place.
  for (const std::size_t batch : {std::size_t{64}, std::size_t{256}}) {
    std::vector<std::vector<std::size_t>> slots(batch);
    for (std::size_t s = 0; s < corpus.sessions.size(); ++s)
      each_token(corpus.sessions[s], [&](std::size_t t) {
        if (corpus.decode[t]) slots[s % batch].push_back(t);
      });
    std::size_t steps = SIZE_MAX;
    for (const auto& slot : slots) steps = std::min(steps, slot.size());
    std::size_t step = 0;
    const double of = share([&](std::vector<std::uint32_t>& rows) {
      rows.clear();
      if (step >= std::min<std::size_t>(steps, 2000)) return false;
      for (const auto& slot : slots)
        for (const std::uint32_t row : corpus.rows_of(slot[step])) rows.push_back(row);
      ++step;
      return true;
    });
    if (step == 0) continue;
    table.rows.push_back({Cell(fmt::format("{} decode tokens, one a session", batch)), Cell::number(of, 1),
                          Cell(batch == 256 ? paper_text(options, "distinct_in_256_decode_tokens_percent") : "")});
  }
  std::size_t at = 0;
  const std::size_t tokens = corpus.ids.size();
  const double window = share([&](std::vector<std::uint32_t>& rows) {
    rows.clear();
    if (at + 8192 > tokens) return false;
    for (std::size_t t = at; t < at + 8192; ++t)
      for (const std::uint32_t row : corpus.rows_of(t)) rows.push_back(row);
    at += 8192;
    return true;
  });
  if (at > 0)
    table.rows.push_back({Cell("8,192 tokens, one session after another"), Cell::number(window, 1),
                          Cell(paper_text(options, "distinct_in_8K_window_percent"))});
  return table;
}

Table answer_growth(const Corpus& corpus, const AccessOptions&) {
  Table table;
  table.title = "How a set of all rows seen grows with the sessions it learns from";
  table.columns = {column("training sessions", ""), column("tokens", ""), column("rows", "M"),
                   column("decode lookups covered", "%")};
  std::vector<std::size_t> training;
  for (std::size_t s = 0; s < corpus.sessions.size(); s += 2) training.push_back(s);
  Bits seen(corpus.table_rows);
  std::uint64_t rows = 0, tokens = 0;
  std::size_t used = 0;
  for (int part = 5; part >= 0; --part) {
    const std::size_t until = std::max<std::size_t>(1, training.size() >> part);
    if (until <= used) continue;
    for (; used < until; ++used)
      each_token(corpus.sessions[training[used]], [&](std::size_t t) {
        ++tokens;
        for (std::size_t o = 0; o < corpus.orders.size(); ++o)
          if (seen.set(corpus.rows_of(t)[o])) rows += corpus.heads[o];
      });
    std::uint64_t lookups = 0, hits = 0;
    for (std::size_t s = 1; s < corpus.sessions.size(); s += 2)
      each_token(corpus.sessions[s], [&](std::size_t t) {
        if (!corpus.decode[t]) return;
        for (const std::uint32_t row : corpus.rows_of(t)) {
          ++lookups;
          hits += seen.test(row);
        }
      });
    table.rows.push_back({Cell::count(static_cast<std::int64_t>(used)), Cell::count(static_cast<std::int64_t>(tokens)),
                          Cell::number(static_cast<double>(rows) / 1e6, 2), Cell::number(percent(hits, lookups), 1)});
  }
  return table;
}

}  // namespace slacktier

#include "harness/trace_stats.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>

#include "harness/sessions.hpp"

namespace slacktier {

Table trace_stats(const std::vector<std::string>& traces, const std::function<void()>& watch) {
  struct Count {
    std::uint64_t turns = 0, tokens = 0;
    std::vector<std::uint64_t> lengths;
  };
  std::array<Count, 4> roles;
  std::vector<std::uint64_t> sessions;
  std::set<std::string> groups;
  const auto source = open_sessions(traces);
  Session session;
  std::uint32_t largest = 0;
  while (source->next(session)) {
    if (watch) watch();
    std::uint64_t tokens = 0;
    for (const Turn& turn : session.turns) {
      Count& count = roles[static_cast<std::size_t>(turn.role)];
      ++count.turns;
      count.tokens += turn.ids.size();
      count.lengths.push_back(turn.ids.size());
      tokens += turn.ids.size();
      for (const std::uint32_t id : turn.ids) largest = std::max(largest, id);
    }
    sessions.push_back(tokens);
    groups.insert(session.group);
  }
  const auto quantile = [](std::vector<std::uint64_t>& values, double q) {
    if (values.empty()) return Cell();
    const auto at = static_cast<std::ptrdiff_t>(q * static_cast<double>(values.size() - 1));
    std::nth_element(values.begin(), values.begin() + at, values.end());
    return Cell::count(static_cast<std::int64_t>(values[static_cast<std::size_t>(at)]));
  };
  Table table;
  table.title = source->describe();
  table.columns = {{"of", "", Align::left, ""},
                   {"number", "", Align::right, ""},
                   {"tokens", "", Align::right, ""},
                   {"share", "%", Align::right, ""},
                   {"median", "tokens", Align::right, ""},
                   {"p90", "tokens", Align::right, ""},
                   {"longest", "tokens", Align::right, ""}};
  std::uint64_t all = 0;
  for (const Count& count : roles) all += count.tokens;
  const auto line = [&](const std::string& of, std::uint64_t number, std::uint64_t tokens,
                        std::vector<std::uint64_t>& lengths) {
    table.rows.push_back({Cell(of), Cell::count(static_cast<std::int64_t>(number)),
                          Cell::count(static_cast<std::int64_t>(tokens)),
                          Cell::number(all > 0 ? 100 * static_cast<double>(tokens) / static_cast<double>(all) : 0, 1),
                          quantile(lengths, 0.5), quantile(lengths, 0.9), quantile(lengths, 1)});
  };
  line("sessions", sessions.size(), all, sessions);
  for (std::size_t r = 0; r < roles.size(); ++r)
    line(fmt::format("{} turns", to_string(static_cast<Role>(r))), roles[r].turns, roles[r].tokens, roles[r].lengths);
  table.footnotes = {fmt::format("{} groups; largest token id {}", groups.size(), largest)};
  return table;
}

}  // namespace slacktier

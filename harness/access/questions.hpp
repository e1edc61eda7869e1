// The questions' answers, and what they share. Private to harness.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "harness/access.hpp"
#include "harness/access/corpus.hpp"
#include "reports/paper.hpp"

namespace slacktier {

inline double percent(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

// "7 to 11" of the paper, or one number; empty where it has none for this workload.
inline std::string paper_text(const AccessOptions& options, const char* key, const std::string& inside = "") {
  const Json& all = paper_values()["appendix_c"];
  if (!all.contains(key)) return "";
  const Json* value = &all[key];
  const std::string field = inside.empty() ? options.workload : inside;
  if (value->is_object()) {
    if (!value->contains(field)) return "";
    value = &(*value)[field];
  }
  if (value->is_array()) return fmt::format("{:g} to {:g}", (*value)[0].get<double>(), (*value)[1].get<double>());
  return fmt::format("{:g}", value->get<double>());
}

inline Column column(const std::string& header, const std::string& unit, Align align = Align::right) {
  return {header, unit, align, ""};
}

inline bool in_test(std::size_t session) { return session % 2 == 1; }

template <class Do>
void each_token(const CorpusSession& session, Do&& each) {
  for (std::size_t t = session.first; t < session.first + session.tokens; ++t) each(t);
}

// Without a cache.
Table answer_coverage(const Corpus& corpus, const AccessOptions& options);
Table answer_never_seen(const Corpus& corpus, const AccessOptions& options);
Table answer_distinct(const Corpus& corpus, const AccessOptions& options);
Table answer_growth(const Corpus& corpus, const AccessOptions& options);
// With a cache of options.cache_rows.
Table answer_warming(const Corpus& corpus, const AccessOptions& options);
Table answer_prefetch(const Corpus& corpus, const AccessOptions& options);
Table answer_packing(const Corpus& corpus, const AccessOptions& options);
Table answer_handoff(const Corpus& corpus, const AccessOptions& options);
Table answer_shards(const Corpus& corpus, const AccessOptions& options);
// Of the table itself.
Table answer_redundancy(const Corpus& corpus, const AccessOptions& options);

}  // namespace slacktier

#include "harness/access.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>

#include "harness/access/questions.hpp"
#include "platforms/error.hpp"

namespace slacktier {
namespace {

struct Question {
  AccessQuestion of;
  Table (*answer)(const Corpus&, const AccessOptions&);
};
// One line per question.
constexpr Question questions[] = {
    {{"coverage", "which share of lookups a static set of the hottest rows covers, by n-gram order"}, answer_coverage},
    {{"never-seen", "which share of lookups no earlier session has made"}, answer_never_seen},
    {{"distinct", "how many different rows a batch and a prompt of 8,192 tokens ask for"}, answer_distinct},
    {{"growth", "how a set of seen rows grows with the sessions it learns from"}, answer_growth},
    {{"warming", "what a cache warmed on other groups' sessions is worth"}, answer_warming},
    {{"prefetch", "what guessing the next token from the prompt recovers"}, answer_prefetch},
    {{"packing", "which pages it saves to store the rows of frequent contexts together"}, answer_packing},
    {{"handoff", "what handing a prompt's rows from prefill to decode is worth"}, answer_handoff},
    {{"shards", "what contiguous and striped shards make the slowest rank read"}, answer_shards},
    {{"redundancy", "whether heads of one order say the same (--rows FOLDER)"}, answer_redundancy},
};

}  // namespace

std::vector<AccessQuestion> access_questions() {
  std::vector<AccessQuestion> all;
  for (const Question& question : questions) all.push_back(question.of);
  return all;
}

std::vector<Table> answer_access(const AccessOptions& options, const std::vector<std::string>& asked) {
  std::vector<const Question*> chosen;
  for (const std::string& name : asked) {
    const auto found = std::find_if(std::begin(questions), std::end(questions),
                                    [&](const Question& question) { return name == question.of.name; });
    if (found == std::end(questions)) {
      std::vector<std::string> names;
      for (const Question& question : questions) names.emplace_back(question.of.name);
      throw UsageError(fmt::format("unknown question '{}': use one of {}", name, fmt::join(names, ", ")));
    }
    chosen.push_back(&*found);
  }
  if (chosen.empty())
    for (const Question& question : questions)
      if (question.answer != answer_redundancy || !options.rows.empty()) chosen.push_back(&question);
  const Corpus corpus = read_corpus(options);
  std::vector<Table> tables;
  for (const Question* question : chosen) {
    if (options.watch) options.watch();
    Table table = question->answer(corpus, options);
    if (!options.workload.empty()) table.title = options.workload + ": " + table.title;
    tables.push_back(std::move(table));
  }
  return tables;
}

}  // namespace slacktier

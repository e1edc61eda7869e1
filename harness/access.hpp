// What sessions ask of an n-gram table, apart from any one cache: coverage, novelty, reuse within a batch and a prompt, and
// what tricks would save. Tables for people, with the paper's values beside ours where it has them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "reports/table.hpp"

namespace slacktier {

struct AccessOptions {
  std::string table = "engram_v41";
  std::string token_map;
  std::vector<std::string> traces;
  std::string workload;  // "agent" or "chat" finds the paper's values
  int layer = -1;        // model layer; -1: the table's last
  std::uint32_t sessions = 64, ranks = 4;
  std::string rows;                      // the table's checkpoint (tier/rows.hpp), for the question about what it holds
  std::uint64_t cache_rows = 4'000'000;  // of all ranks together, for the questions with a cache
  std::function<void()> watch;           // called now and then; may throw
};

struct AccessQuestion {
  const char* name;
  const char* asks;
};
std::vector<AccessQuestion> access_questions();

// The answers, one table a question. One column (head) of each n-gram order is followed: the heads of an order see the same
// contexts and differ by hash collisions alone; counts of rows are of all heads. Sessions are split by turns into a training
// half (even places in the file) and a test half. Throws UsageError for an unknown question, listing those there are, for
// sessions and tables that cannot be used, and for fewer than two sessions. No questions: all, redundancy where options.rows
// says what to look at.
std::vector<Table> answer_access(const AccessOptions& options, const std::vector<std::string>& questions);

}  // namespace slacktier

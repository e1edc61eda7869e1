// Token sessions without their tokens: what may be handed on when the conversations may not.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace slacktier {

struct AnonymiseOptions {
  std::vector<std::string> traces;  // token sessions
  std::string table = "engram_v41", token_map;
  std::string out;              // sessions; beside them OUT.table.json and OUT.rows
  std::function<void()> watch;  // called now and then; may throw
};

struct Anonymised {
  std::uint64_t sessions = 0, tokens = 0, contexts = 0;
  std::string table_file, rows_file;
};

// Each token becomes the number of its context (the tokens that its rows depend on), contexts numbered at random; OUT.rows
// lists the rows of every context, OUT.table.json describes them as a table of hash "recorded". Every command that takes
// sessions and a table takes these two. Rows keep their column and which lookups share them; within the column they are
// renumbered at random, because rows of a public hash give the tokens away: whoever tries all pairs of ids finds the one
// pair that has them. What was drawn is kept nowhere, so that two runs differ. Ids and groups become running numbers;
// arrival times are dropped.
//
// Caches hit as before: exactly where a rank owns whole columns, and but for the rows of a split column elsewhere.
// Not protected: how many turns of which role and length a session has, in which order; which contexts recur, and how often,
// within and between sessions. Someone who has some of the texts can find them by that pattern, and common phrases may be
// guessed by their frequency. It takes the content out of a trace; it does not make it anonymous against everybody.
//
// Throws UsageError for sessions and tables that cannot be used. Memory: about 100 bytes a distinct context, and a layer's
// rows.
Anonymised anonymise_sessions(const AnonymiseOptions& options);

// What anonymise_sessions throws for a table and a token map that do not fit, before there are sessions.
void check_anonymised_table(const AnonymiseOptions& options);

}  // namespace slacktier

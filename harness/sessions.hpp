// Token sessions: what users and a model said to each other, as token ids, read one session at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace slacktier {

enum class Role { system, user, assistant, tool };
const char* to_string(Role role);

// Assistant turns are what a server decodes; all other turns are prefilled.
struct Turn {
  Role role = Role::user;
  std::vector<std::uint32_t> ids;
};

struct Session {
  std::string id, group;
  std::vector<Turn> turns;
};

// A stream of sessions, each handed out once.
class SessionSource {
 public:
  virtual ~SessionSource() = default;
  // Overwrites `session` with the next one (its memory is reused where possible); false at the end.
  virtual bool next(Session& session) = 0;
  // Where the sessions come from and what was left out so far: one line for a table's head and for provenance.
  virtual std::string describe() const = 0;
  // False: ids are the tokenizer's raw ids. True: they are ids that the hash takes (no token map is applied), as a
  // generator hands them out.
  virtual bool hash_ids() const { return false; }
  // True when no real user produced these sessions; such results are labelled.
  virtual bool generated() const { return false; }
};

struct SessionOptions {
  std::uint32_t raw_vocabulary = 0;                    // ids must be below it; 0: any 32-bit id
  bool strict = false;                                 // a session without an assistant token is an error, not skipped
  std::size_t max_line_bytes = std::size_t{64} << 20;  // longer lines are an error: what bounds the memory
};

// Reads JSON Lines files one after another, one session a line:
//   {"id": "…", "group": "…", "turns": [{"role": "system|user|assistant|tool", "ids": [token ids]}]}
// "group" may be absent; other keys are ignored; blank lines are skipped. Each file is plain, gzip or zstd, told by its
// first bytes, and is streamed: memory holds one line and the decompressor's window. Sessions without an assistant token are
// skipped and counted in describe(). Missing files are reported here, all else by next(): UsageError with file:line and
// field for torn or malformed lines, wrong types, unknown roles, ids outside the vocabulary, a session id that was seen
// before (a session is never replayed), truncated or damaged compressed files, and files that hold no session.
std::unique_ptr<SessionSource> open_sessions(const std::vector<std::string>& paths, const SessionOptions& options = {});

// Hands out sessions held in memory, in order. `name` is what describe() says.
std::unique_ptr<SessionSource> listed_sessions(std::vector<Session> sessions, std::string name, bool hash_ids = false);

}  // namespace slacktier

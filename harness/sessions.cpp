#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <unordered_set>

#include "harness/sessions.hpp"
#include "harness/sessions/byte_stream.hpp"
#include "harness/sessions/session_json.hpp"
#include "platforms/error.hpp"

namespace slacktier {
namespace {

bool has_assistant_token(const Session& session) {
  for (const Turn& turn : session.turns) {
    if (turn.role == Role::assistant && !turn.ids.empty()) return true;
  }
  return false;
}

class JsonlSource : public SessionSource {
 public:
  JsonlSource(const std::vector<std::string>& paths, const SessionOptions& options)
      : paths_(paths), options_(options), parser_(options.raw_vocabulary) {
    if (paths.empty()) throw UsageError("no session file is named");
    for (const std::string& path : paths) {
      if (::access(path.c_str(), R_OK) != 0) throw UsageError(path + ": cannot open: " + std::strerror(errno));
    }
  }

  bool next(Session& session) override {
    for (;;) {
      if (!lines_) {
        if (file_ == paths_.size()) return false;
        lines_.emplace(paths_[file_], options_.max_line_bytes);
        sessions_in_file_ = 0;
      }
      std::string_view line;
      if (!lines_->next(line)) {
        if (sessions_in_file_ == 0) throw UsageError(paths_[file_] + ": the file holds no session with an assistant turn");
        lines_.reset();
        ++file_;
        continue;
      }
      if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
      if (const std::string error = parser_.parse(line, session); !error.empty()) fail(error);
      if (!seen_.insert(std::hash<std::string>{}(session.id)).second) {
        fail("the session id \"" + session.id + "\" was seen before; a session is never replayed, so ids must differ");
      }
      if (!has_assistant_token(session)) {
        if (options_.strict) fail("the session \"" + session.id + "\" has no assistant turn with ids");
        ++skipped_;
        continue;
      }
      ++sessions_in_file_;
      ++sessions_;
      return true;
    }
  }

  std::string describe() const override {
    std::string text;
    for (const std::string& path : paths_) text += (text.empty() ? "" : ", ") + path;
    text += ": " + std::to_string(sessions_) + " sessions read";
    if (skipped_ > 0) text += ", " + std::to_string(skipped_) + " without an assistant turn skipped";
    return text;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw UsageError(lines_->path() + ":" + std::to_string(lines_->line_number()) + ": " + what);
  }

  std::vector<std::string> paths_;
  SessionOptions options_;
  SessionParser parser_;
  std::optional<LineReader> lines_;
  std::size_t file_ = 0;
  std::uint64_t sessions_ = 0, skipped_ = 0, sessions_in_file_ = 0;
  std::unordered_set<std::size_t> seen_;  // hashes of ids: 64 bits a session, however long its id
};

class ListedSource : public SessionSource {
 public:
  ListedSource(std::vector<Session> sessions, std::string name, bool hash_ids)
      : sessions_(std::move(sessions)), name_(std::move(name)), hash_ids_(hash_ids) {}
  bool next(Session& session) override {
    if (next_ == sessions_.size()) return false;
    session = sessions_[next_++];
    return true;
  }
  std::string describe() const override { return name_; }
  bool hash_ids() const override { return hash_ids_; }

 private:
  std::vector<Session> sessions_;
  std::string name_;
  bool hash_ids_;
  std::size_t next_ = 0;
};

}  // namespace

const char* to_string(Role role) {
  switch (role) {
    case Role::system:
      return "system";
    case Role::user:
      return "user";
    case Role::assistant:
      return "assistant";
    case Role::tool:
      return "tool";
  }
  return "";
}

std::unique_ptr<SessionSource> open_sessions(const std::vector<std::string>& paths, const SessionOptions& options) {
  return std::make_unique<JsonlSource>(paths, options);
}

std::unique_ptr<SessionSource> listed_sessions(std::vector<Session> sessions, std::string name, bool hash_ids) {
  return std::make_unique<ListedSource>(std::move(sessions), std::move(name), hash_ids);
}

}  // namespace slacktier

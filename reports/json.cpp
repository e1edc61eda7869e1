#include "reports/json.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <fstream>
#include <set>
#include <sstream>
#include <system_error>
#include <vector>

#include "reports/error.hpp"

namespace slacktier {
namespace {

constexpr std::size_t max_depth = 64;

struct Position {
  std::size_t line = 1, column = 1;
};

Position position_of(std::string_view text, std::size_t byte) {
  Position at;
  for (std::size_t i = 0; i < byte && i < text.size(); ++i) {
    ++at.column;
    if (text[i] == '\n') at = {at.line + 1, 1};
  }
  return at;
}

// Walks the text as the library's parser reports it and throws for what the library would accept.
class StrictCheck : public nlohmann::json_sax<Json> {
 public:
  StrictCheck(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(number_integer_t) override { return value(); }
  bool number_unsigned(number_unsigned_t) override { return value(); }
  bool number_float(number_float_t, const string_t&) override { return value(); }
  bool string(string_t&) override { return value(); }
  bool binary(binary_t&) override { return value(); }
  bool start_object(std::size_t) override { return open(false); }
  bool start_array(std::size_t) override { return open(true); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& key) override {
    Level& level = levels_.back();
    level.name = key;
    if (!level.keys.insert(key).second) throw InputError(fmt::format("{}: the key {} appears twice", name_, pointer()));
    return true;
  }
  bool parse_error(std::size_t byte, const std::string&, const nlohmann::detail::exception& error) override {
    // The library's text reads "[json.exception…] parse error at line 1, column 2: why"; only the reason is for the user.
    std::string why = error.what();
    const std::size_t column = why.find("column ");
    std::size_t cut = column == std::string::npos ? why.find("] ") : why.find(": ", column);
    if (cut != std::string::npos) why = why.substr(cut + 2);
    const Position at = position_of(text_, byte > 0 ? byte - 1 : 0);
    throw InputError(fmt::format("{}:{}:{}: not JSON: {}", name_, at.line, at.column, why));
  }

 private:
  struct Level {
    bool array = false;
    std::size_t index = 0;
    std::string name;
    std::set<std::string> keys;
  };

  bool value() {
    if (!levels_.empty()) ++levels_.back().index;
    return true;
  }
  bool open(bool array) {
    if (levels_.size() == max_depth) throw InputError(fmt::format("{}: nested deeper than {} levels", name_, max_depth));
    levels_.push_back({array, 0, {}, {}});
    return true;
  }
  bool close() {
    levels_.pop_back();
    return value();
  }
  std::string pointer() const {
    Json::json_pointer at;
    for (const Level& level : levels_) at.push_back(level.array ? std::to_string(level.index) : level.name);
    return at.to_string();
  }

  std::string_view text_;
  const std::string& name_;
  std::vector<Level> levels_;
};

// Steps over a text that is known to be JSON.
class Locator {
 public:
  explicit Locator(std::string_view text) : text_(text) {}

  std::size_t find(const std::vector<std::string>& path) {
    space();
    std::size_t at = here_;
    for (const std::string& step : path) {
      if (!enter(step)) return at;
      at = here_;
    }
    return at;
  }

 private:
  bool enter(const std::string& step) {
    if (here_ >= text_.size() || (text_[here_] != '{' && text_[here_] != '[')) return false;
    const bool object = text_[here_++] == '{';
    for (std::size_t index = 0;; ++index) {
      space();
      if (here_ >= text_.size() || text_[here_] == '}' || text_[here_] == ']') return false;
      std::string name = std::to_string(index);
      if (object) {
        const std::size_t begin = here_;
        skip();
        name = Json::parse(text_.substr(begin, here_ - begin)).get<std::string>();
        space();
        ++here_;  // ':'
        space();
      }
      if (name == step) return true;
      skip();
      space();
      if (here_ < text_.size() && text_[here_] == ',') ++here_;
    }
  }
  void space() { here_ = std::min(text_.find_first_not_of(" \t\r\n", here_), text_.size()); }
  void skip() {  // one whole value
    std::size_t depth = 0;
    do {
      const char c = text_[here_];
      if (c == '"') {
        for (++here_; text_[here_] != '"'; ++here_) here_ += text_[here_] == '\\';
        ++here_;
      } else if (c == '{' || c == '[') {
        ++depth, ++here_;
      } else if (c == '}' || c == ']') {
        --depth, ++here_;
      } else if (depth > 0) {
        ++here_;
      } else {
        here_ = std::min(text_.find_first_of(",}] \t\r\n", here_), text_.size());
      }
    } while (depth > 0 && here_ < text_.size());
  }

  std::string_view text_;
  std::size_t here_ = 0;
};

void replace_below(Json& value, const Json::json_pointer& at, std::vector<std::string>& replaced) {
  if (value.is_object()) {
    std::string reason;
    for (auto& [key, field] : value.items()) {
      if (field.is_number_float() && !std::isfinite(field.get<double>())) {
        reason += fmt::format("{}{} is {}", reason.empty() ? "" : "; ", key,
                              std::isnan(field.get<double>()) ? "not a number" : "infinite");
        field = nullptr;
        replaced.push_back((at / key).to_string());
      } else {
        replace_below(field, at / key, replaced);
      }
    }
    if (!reason.empty()) {
      const bool has =
          value.contains("reason") && value["reason"].is_string() && !value["reason"].get<std::string>().empty();
      value["reason"] = has ? value["reason"].get<std::string>() + "; " + reason : reason;
    }
  } else if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (value[i].is_number_float() && !std::isfinite(value[i].get<double>())) {
        value[i] = nullptr;
        replaced.push_back((at / i).to_string());
      } else {
        replace_below(value[i], at / i, replaced);
      }
    }
  } else if (value.is_number_float() && !std::isfinite(value.get<double>())) {
    value = nullptr;
    replaced.push_back(at.to_string());
  }
}

[[noreturn]] void throw_write_error(const std::filesystem::path& path) {
  throw std::system_error(errno, std::generic_category(), "writing " + path.string());
}

void write_all(int file, std::string_view text, const std::filesystem::path& path) {
  while (!text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_write_error(path);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

// Closes and, unless kept, removes a temporary file.
struct TemporaryFile {
  int file = -1;
  std::filesystem::path path;
  bool keep = false;
  ~TemporaryFile() {
    if (file >= 0) ::close(file);
    if (file >= 0 && !keep) ::unlink(path.c_str());
  }
};

}  // namespace

Json parse_json(std::string_view text, const std::string& name) {
  StrictCheck check(text, name);
  Json::sax_parse(text, &check);
  return Json::parse(text);
}

std::string read_text_file(const std::filesystem::path& path) {
  if (std::filesystem::is_directory(path)) throw InputError(path.string() + ": is a directory, not a file");
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw InputError(fmt::format("{}: cannot be opened: {}", path.string(), std::generic_category().message(errno)));
  std::ostringstream text;
  text << file.rdbuf();
  if (file.bad()) throw InputError(path.string() + ": cannot be read");
  return std::move(text).str();
}

void write_text_file(const std::filesystem::path& path, std::string_view text) {
  std::error_code none;
  const std::filesystem::path target =
      std::filesystem::is_symlink(path, none) ? std::filesystem::weakly_canonical(path) : path;
  if (std::filesystem::exists(target, none) && !std::filesystem::is_regular_file(target, none)) {
    // A pipe or terminal cannot be replaced, only written to.
    TemporaryFile pipe{::open(target.c_str(), O_WRONLY | O_CLOEXEC), target, true};
    if (pipe.file < 0) throw_write_error(path);
    return write_all(pipe.file, text, path);
  }
  TemporaryFile temporary;
  for (int attempt = 0; temporary.file < 0; ++attempt) {
    temporary.path = target;
    temporary.path += fmt::format(".{}.{}.tmp", ::getpid(), attempt);
    temporary.file = ::open(temporary.path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (temporary.file < 0 && (errno != EEXIST || attempt == 100)) throw_write_error(path);
  }
  write_all(temporary.file, text, path);
  if (::fsync(temporary.file) != 0) throw_write_error(path);
  if (::rename(temporary.path.c_str(), target.c_str()) != 0) throw_write_error(path);
  temporary.keep = true;
}

std::size_t line_of(std::string_view text, const std::string& pointer) {
  std::vector<std::string> path;
  for (Json::json_pointer at(pointer); !at.empty(); at.pop_back()) path.insert(path.begin(), at.back());
  return position_of(text, Locator(text).find(path)).line;
}

std::vector<std::string> replace_not_finite(Json& value) {
  std::vector<std::string> replaced;
  replace_below(value, Json::json_pointer(), replaced);
  return replaced;
}

}  // namespace slacktier

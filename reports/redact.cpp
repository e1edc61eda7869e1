#include <algorithm>
#include <array>
#include <cctype>
#include <set>

#include "reports/results.hpp"
#include "reports/sha256.hpp"

namespace slacktier {
namespace {

// Keys whose strings say who or where; compared without case, '_' and '-'.
constexpr std::array identity_keys = {
    "hostname", "nodename", "fqdn", "domain", "serial",   "serialnumber", "uuid",     "guid",    "wwn",       "wwid",
    "mac",      "address",  "ip",   "user",   "username", "login",        "email",    "home",    "cwd",       "path",
    "file",     "folder",   "disk", "disks",  "image",    "url",          "endpoint", "connect", "machineid", "container"};
constexpr std::size_t least_identity = 3;  // shorter ones are hidden where they stand, not wherever the letters occur

bool names_identity(const std::string& key) {
  std::string plain;
  for (const char c : key)
    if (c != '_' && c != '-') plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return std::find(identity_keys.begin(), identity_keys.end(), plain) != identity_keys.end();
}

class Redactor {
 public:
  explicit Redactor(std::string_view salt) : salt_(salt) {}

  // Finds the identities; they are hidden in any string, so a host name in a message goes too.
  void collect(const Json& value, bool identity = false) {
    if (value.is_object()) {
      // Sample files are named after configurations, and readers need the name.
      const bool sample = value.contains("file") && value.contains("sha256") && value.size() == 2;
      for (const auto& [key, field] : value.items()) collect(field, !sample && names_identity(key));
    } else if (value.is_array()) {
      for (const Json& item : value) collect(item, identity);
    } else if (value.is_string() && identity) {
      add(value.get<std::string>());
    }
  }
  void add(const std::string& text) {
    if (text.size() >= least_identity) identities_.insert(text);
  }

  void hide(Json& value, bool identity = false) const {
    if (value.is_object()) {
      const bool sample = value.contains("file") && value.contains("sha256") && value.size() == 2;
      for (auto& [key, field] : value.items()) hide(field, !sample && names_identity(key));
    } else if (value.is_array()) {
      for (Json& item : value) hide(item, identity);
    } else if (value.is_string()) {
      const std::string text = value.get<std::string>();
      value = identity && !text.empty() ? hidden(text) : hide_in(text);
    }
  }

  std::string hide_in(std::string text) const {
    // Longest first: a path is hidden before the host name that is part of it.
    std::vector<std::string> known(identities_.begin(), identities_.end());
    std::stable_sort(known.begin(), known.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
    for (const std::string& identity : known) {
      const std::string stand_in = hidden(identity);
      for (std::size_t at = 0; (at = text.find(identity, at)) != std::string::npos;) {
        if (!stands_alone(text, at, identity.size())) {
          ++at;
          continue;
        }
        text.replace(at, identity.size(), stand_in);
        at += stand_in.size();
      }
    }
    return hide_paths(text);
  }

 private:
  static bool word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
  static bool stands_alone(const std::string& text, std::size_t at, std::size_t size) {
    const bool joined_before = at > 0 && word(text[at - 1]) && word(text[at]);
    const bool joined_behind = at + size < text.size() && word(text[at + size - 1]) && word(text[at + size]);
    return !joined_before && !joined_behind;
  }

  std::string hide_paths(const std::string& text) const {
    std::string result;
    for (std::size_t at = 0; at < text.size();) {
      const bool begins = at == 0 || std::string_view(" =:,;'\"([{").find(text[at - 1]) != std::string_view::npos;
      const bool path = begins && text[at] == '/' && at + 1 < text.size() && (word(text[at + 1]) || text[at + 1] == '.');
      if (!path) {
        result += text[at++];
        continue;
      }
      const std::size_t end = std::min(text.find_first_of(" ,;:'\")]}", at), text.size());
      result += hidden(text.substr(at, end - at));
      at = end;
    }
    return result;
  }

  std::string hidden(const std::string& text) const {
    if (text.rfind("sha256:", 0) == 0 && text.size() == 19) return text;  // hidden before
    return "sha256:" + sha256_hex(std::string(salt_) + text).substr(0, 12);
  }

  std::string_view salt_;
  std::set<std::string> identities_;
};

}  // namespace

void redact(Json& value, std::string_view salt) {
  Redactor redactor(salt);
  redactor.collect(value);
  redactor.hide(value);
}

void redact(Envelope& envelope, std::string_view salt) {
  Redactor redactor(salt);
  for (Json* part : {&envelope.provenance, &envelope.settings, &envelope.results}) redactor.collect(*part);
  for (Json* part : {&envelope.provenance, &envelope.settings, &envelope.results}) redactor.hide(*part);
  for (Warning& warning : envelope.warnings) warning.message = redactor.hide_in(warning.message);
  envelope.provenance["redacted"] = true;
}

}  // namespace slacktier

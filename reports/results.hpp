// The one envelope of every file that this project writes for itself to read:
//   {"schema": "slacktier/<kind>/<major>.<minor>", "provenance": {…}, "settings": {…}, "results": …, "warnings": […]}
// Kinds and their fields: reports/schemas/<kind>.json. Units are part of field names. A value that could not be measured is
// null, and "reason" beside it says why; there is no NaN and no infinity.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "reports/json.hpp"

namespace slacktier {

// What a reader of the result must know: a fallback, an assumption, a limit. Shown in every table's head.
struct Warning {
  std::string code;     // snake_case, stable: "windows_assumed"
  std::string message;  // one sentence: "windows: the paper's 4xH200, not this machine"
  std::string field;    // pointer of the value it is about; may be empty
};

struct Envelope {
  std::string kind;          // "windows", "reads", "misses", "gates", "placement", "results"
  int major = 1, minor = 0;  // of the schema
  Json provenance = Json::object();
  Json settings = Json::object();
  Json results;
  std::vector<Warning> warnings;

  // Not in the file.
  std::string file;                // where it was read from
  std::vector<std::string> notes;  // what the reader has to say: "schema 1.3 is newer than 1.0: unknown fields ignored"
};

// The file's text: two-space indentation, keys in order, newline at the end. NaN and infinities become null with a reason
// and, where they stood in an array, a warning. Throws std::logic_error naming the field when the result does not fit its
// schema.
std::string to_text(Envelope envelope);

// to_text to `path`, atomically; the folder is made if need be. Throws std::system_error.
void write_envelope(const std::filesystem::path& path, const Envelope& envelope);

// Strict parse and validation. `kind` empty: any. Throws InputError naming file, line and field for what is not JSON, not an
// envelope, another kind than asked for, an unknown kind or another major version, or does not fit the schema. A newer minor
// version's unknown fields are accepted and noted. A file without provenance or warnings, as one writes by hand, is accepted
// and noted.
Envelope read_envelope(const std::filesystem::path& path, std::string_view kind = "");
// The same of a text; `name` stands for the file in messages.
Envelope parse_envelope(std::string_view text, const std::string& name, std::string_view kind = "");

// Provenance. `facts` is what the caller knows of host, disks and device, as {"host": {…}, "disks": […], "device": {…}, …};
// its keys follow tool, commit, argv, seed and start time.
struct ProvenanceInput {
  std::string program;            // "slacktier-harness run"
  std::vector<std::string> argv;  // as given, program first
  std::uint64_t seed = 0;
  std::int64_t start_unix_s = 0;  // written as RFC 3339 UTC
  Json facts = Json::object();
};
Json provenance(const ProvenanceInput& input);

std::string tool_version();  // "0.1.0"
std::string git_commit();    // 40 digits, or "unknown" when built outside a git checkout
bool git_dirty();            // tracked files differed from the commit when this was built

// Hides identities below `value` for --redact: strings under a key that names one (hostname, serial, path, file, disk, user,
// address and the like) and every absolute path, in argv and messages too, become "sha256:" and 12 digits of the hash of
// `salt` and the text; equal ones stay equal. With an empty salt anyone who guesses a name can confirm it.
void redact(Json& value, std::string_view salt = "");
// Of a whole envelope: provenance, settings, results, warnings; sets provenance.redacted.
void redact(Envelope& envelope, std::string_view salt = "");

}  // namespace slacktier

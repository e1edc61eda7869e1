#include "harness/sessions.hpp"

#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>

#include "platforms/error.hpp"
#include "tests/catch.hpp"

using namespace slacktier;

namespace {

// A directory of its own for each test case.
struct Files {
  std::filesystem::path directory;
  Files() {
    std::string name = (std::filesystem::temp_directory_path() / "slacktier_sessions_XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    directory = name;
  }
  ~Files() { std::filesystem::remove_all(directory); }
  std::string write(const std::string& name, const std::string& content) const {
    const std::string path = (directory / name).string();
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }
};

std::string gzip(const std::string& text) {
  z_stream z{};
  REQUIRE(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(deflateBound(&z, text.size()), '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  z.avail_in = static_cast<uInt>(text.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&z, Z_FINISH) == Z_STREAM_END);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

std::string zstd(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  const std::size_t size = ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3);
  REQUIRE(!ZSTD_isError(size));
  out.resize(size);
  return out;
}

std::string line(const std::string& id, const std::string& turns) {
  return "{\"id\":\"" + id + "\",\"group\":\"g\",\"turns\":[" + turns + "]}\n";
}
const std::string user = "{\"role\":\"user\",\"ids\":[1,2,3]}";
const std::string assistant = "{\"role\":\"assistant\",\"ids\":[4,5]}";

std::vector<Session> read_all(const std::vector<std::string>& paths, const SessionOptions& options = {}) {
  const auto source = open_sessions(paths, options);
  std::vector<Session> all;
  Session session;
  while (source->next(session)) all.push_back(session);
  return all;
}

// The message of the UsageError that reading ends with, without the directory.
std::string error_of(const std::string& path, const SessionOptions& options = {}) {
  try {
    read_all({path}, options);
  } catch (const UsageError& e) {
    const std::string text = e.what();
    const std::string directory = std::filesystem::path(path).parent_path().string() + "/";
    REQUIRE(text.rfind(directory, 0) == 0);
    return text.substr(directory.size());
  }
  return "no error";
}

// Checks that the error of a file with this content is `text`, or starts so.
void check_error(const std::string& content, const std::string& text, const SessionOptions& options = {}) {
  const Files files;
  const std::string error = error_of(files.write("f", content), options);
  INFO("expected " << text << "\nbut got  " << error);
  CHECK(error.rfind(text, 0) == 0);
}

}  // namespace

TEST_CASE("sessions are read alike from plain, gzip and zstd files", "[sessions]") {
  const Files files;
  std::string text = "\n" + line("a", user + "," + assistant) + "  \r\n";
  text += "{\"turns\": [{\"ids\": [7], \"role\": \"system\", \"text\": \"x\"}, {\"ids\": [], \"role\": \"tool\"}, " +
          assistant +
          "], \"source\": {\"deep\": [1, {\"ids\": [-1.5, null]}, true]}, \"id\": \"b\"}";  // no newline at the end
  const std::string second = line("c", assistant);
  const std::vector<std::string> paths = {
      files.write("plain", text),
      files.write("one.gz", gzip(text)),
      files.write("members.gz", gzip(text.substr(0, 50)) + gzip(text.substr(50))),
      files.write("one.zst", zstd(text)),
      files.write("frames.zst",
                  std::string("\x50\x2A\x4D\x18\x02\x00\x00\x00xy", 10) + zstd(text.substr(0, 50)) + zstd(text.substr(50))),
  };
  for (const std::string& path : paths) {
    const std::vector<Session> sessions = read_all({path, files.write("second", second)});
    REQUIRE(sessions.size() == 3);
    CHECK(sessions[0].id == "a");
    CHECK(sessions[0].group == "g");
    REQUIRE(sessions[0].turns.size() == 2);
    CHECK(sessions[0].turns[0].role == Role::user);
    CHECK(sessions[0].turns[0].ids == std::vector<std::uint32_t>{1, 2, 3});
    CHECK(sessions[0].turns[1].role == Role::assistant);
    CHECK(sessions[0].turns[1].ids == std::vector<std::uint32_t>{4, 5});
    CHECK(sessions[1].id == "b");
    CHECK(sessions[1].group.empty());
    REQUIRE(sessions[1].turns.size() == 3);
    CHECK(sessions[1].turns[0].role == Role::system);
    CHECK(sessions[1].turns[1].role == Role::tool);
    CHECK(sessions[1].turns[1].ids.empty());
    CHECK(sessions[2].id == "c");
  }
}

TEST_CASE("lines longer than the read buffers are put together", "[sessions]") {
  const Files files;
  std::string text;
  std::vector<std::vector<std::uint32_t>> expected;
  std::uint32_t value = 1;
  for (std::size_t tokens : {10u, 300000u, 1u, 65536u, 7u}) {
    std::vector<std::uint32_t> ids;
    std::string list;
    for (std::size_t i = 0; i < tokens; ++i) {
      value = value * 1664525u + 1013904223u;
      ids.push_back(value >> 10);
      list += (i ? "," : "") + std::to_string(value >> 10);
    }
    expected.push_back(ids);
    text += line(std::to_string(tokens), "{\"role\":\"assistant\",\"ids\":[" + list + "]}");
  }
  for (const std::string& path :
       {files.write("plain", text), files.write("gz", gzip(text)), files.write("zst", zstd(text))}) {
    const std::vector<Session> sessions = read_all({path});
    REQUIRE(sessions.size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(sessions[i].turns.at(0).ids == expected[i]);
  }
  SessionOptions options;
  options.max_line_bytes = 100000;
  check_error(text, "f:2: the line is longer than 100000 bytes", options);
}

TEST_CASE("sessions without an assistant token are skipped and counted, or an error", "[sessions]") {
  const Files files;
  const std::string text = line("a", user) + line("b", assistant) + line("c", "{\"role\":\"assistant\",\"ids\":[]}");
  const auto source = open_sessions({files.write("f", text)});
  Session session;
  REQUIRE(source->next(session));
  CHECK(session.id == "b");
  CHECK_FALSE(source->next(session));
  CHECK_FALSE(source->next(session));
  const std::string says = source->describe();
  CHECK(says.substr(says.rfind("/f: ")) == "/f: 1 sessions read, 2 without an assistant turn skipped");
  SessionOptions strict;
  strict.strict = true;
  check_error(text, "f:1: the session \"a\" has no assistant turn with ids", strict);
}

TEST_CASE("bad lines name file, line and field", "[sessions]") {
  const std::string good = line("a", user + "," + assistant);
  const auto bad = [&](const std::string& second, const std::string& text) { check_error(good + second, "f:2: " + text); };
  bad(line("b", user).substr(0, 40), "torn or malformed JSON at byte 41: ");
  bad("{\"id\":\"b\",\"turns\":[]}}\n", "torn or malformed JSON at byte 22: ");
  bad("nonsense\n", "torn or malformed JSON at byte 2: ");
  bad("[1]\n", "the line is an array; it must be an object with id, group and turns");
  bad("17\n", "the line is a number; it must be an object with id, group and turns");
  bad("{\"id\":3,\"turns\":[]}\n", "id is a number; it must be a string");
  bad("{\"id\":\"b\",\"group\":null,\"turns\":[]}\n", "group is null; it must be a string");
  bad("{\"id\":\"b\",\"turns\":{}}\n", "turns is an object; it must be an array");
  bad("{\"id\":\"b\"}\n", "the session has no turns");
  bad("{\"turns\":[]}\n", "the session has no id");
  bad("{\"id\":\"b\",\"id\":\"c\",\"turns\":[]}\n", "id is given twice");
  bad(line("b", "[]"), "turns[0] is an array; it must be an object with role and ids");
  bad(line("b", user + ",5"), "turns[1] is a number; it must be an object with role and ids");
  bad(line("b", user + ",{\"role\":\"bot\",\"ids\":[]}"),
      "turns[1].role is \"bot\"; roles are system, user, assistant and tool");
  bad(line("b", "{\"role\":1,\"ids\":[]}"), "turns[0].role is a number; it must be a string");
  bad(line("b", user + ",{\"ids\":[]}"), "turns[1] has no role");
  bad(line("b", "{\"role\":\"user\"}"), "turns[0] has no ids");
  bad(line("b", "{\"role\":\"user\",\"text\":\"hello\"}"), "turns[0] has no ids; it is text: turn it into token ids first");
  bad(line("b", "{\"role\":\"user\",\"ids\":\"1 2\"}"), "turns[0].ids is a string; it must be an array");
  bad(line("b", "{\"role\":\"user\",\"ids\":[1,\"2\"]}"), "turns[0].ids[1] is a string; it must be a token id");
  bad(line("b", "{\"role\":\"user\",\"ids\":[[1]]}"), "turns[0].ids[0] is an array; it must be a token id");
  bad(line("b", "{\"role\":\"user\",\"ids\":[1,2.0]}"), "turns[0].ids[1] is 2.0; a token id is a whole number");
  bad(line("b", "{\"role\":\"user\",\"ids\":[-4]}"), "turns[0].ids[0] is -4; a token id is not negative");
  bad(line("b", "{\"role\":\"user\",\"ids\":[4294967296]}"),
      "turns[0].ids[0] is 4294967296; a token id is a whole number below");
  bad(good, "the session id \"a\" was seen before");
}

TEST_CASE("ids outside the vocabulary are refused", "[sessions]") {
  SessionOptions options;
  options.raw_vocabulary = 129280;
  const std::string text = line("a", assistant) + line("b", "{\"role\":\"assistant\",\"ids\":[129279]}");
  check_error(text, "no error", options);
  check_error(text + line("c", "{\"role\":\"assistant\",\"ids\":[0,129280]}"),
              "f:3: turns[0].ids[1] is 129280; a token id is a whole number below 129280 (the model's vocabulary)", options);
}

TEST_CASE("missing, empty, truncated and damaged files are refused", "[sessions]") {
  const Files files;
  CHECK_THROWS_AS(open_sessions({}), UsageError);
  CHECK_THROWS_AS(open_sessions({(files.directory / "missing").string()}), UsageError);
  CHECK(error_of(files.directory.string() + "/.") == ".: is a directory; name a session file");
  check_error("", "f: the file is empty");
  check_error("\n\n", "f: the file holds no session with an assistant turn");
  check_error(gzip(""), "f: the file holds no session with an assistant turn");
  check_error(zstd(""), "f: the file holds no session with an assistant turn");

  std::string text;
  for (int i = 0; i < 2000; ++i) text += line(std::to_string(i * 7919 % 10007), user + "," + assistant);
  for (const std::string& whole : {gzip(text), zstd(text)}) {
    const bool is_gzip = whole[0] == '\x1f';
    // Cut anywhere, the last bytes included, the file is truncated; nothing of it passes silently.
    for (std::size_t cut : {std::size_t{5}, whole.size() / 2, whole.size() - 1}) {
      const std::string error = error_of(files.write("cut", whole.substr(0, cut)));
      INFO(error);
      CHECK(error.find(is_gzip ? ": the gzip data is truncated" : ": the zstd data is truncated") != std::string::npos);
      CHECK(error.rfind("cut:", 0) == 0);
    }
    const std::string trailing = error_of(files.write("trailing", whole + "rubbish"));
    CHECK(trailing.find(is_gzip ? ":2001: the gzip data is damaged" : ":2001: the zstd data is damaged") !=
          std::string::npos);
  }
  // A flipped byte shows in gzip's checksum at the latest.
  std::string damaged = gzip(text);
  damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 0x10);
  CHECK(error_of(files.write("damaged", damaged)) != "no error");
}

TEST_CASE("the second file's errors name the second file", "[sessions]") {
  const Files files;
  const std::string first = files.write("first", line("a", assistant));
  const std::string second = files.write("second", line("b", assistant) + line("a", assistant));
  try {
    read_all({first, second});
    FAIL("read without an error");
  } catch (const UsageError& e) {
    CHECK(std::string(e.what()).rfind(second + ":2: the session id \"a\" was seen before", 0) == 0);
  }
}

#include "harness/vocab.hpp"

#include <fmt/format.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "harness/sessions/byte_stream.hpp"
#include "platforms/error.hpp"

namespace slacktier {
namespace {

// Byte of each character that a byte-level BPE writes for it, -1 for others: printable Latin-1 characters stand for
// themselves, the other bytes for characters from U+0100 on (GPT-2's bytes_to_unicode).
const std::array<int, 0x144>& bytes_of_characters() {
  static const std::array<int, 0x144> table = [] {
    std::array<int, 0x144> made;
    made.fill(-1);
    std::size_t next = 0x100;
    for (int byte = 0; byte < 256; ++byte) {
      const bool itself = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
      made[itself ? static_cast<std::size_t>(byte) : next++] = byte;
    }
    return made;
  }();
  return table;
}

std::string decoded(std::string_view token) {
  const auto text = icu::UnicodeString::fromUTF8(icu::StringPiece(token.data(), static_cast<std::int32_t>(token.size())));
  std::string bytes;
  for (std::int32_t i = 0; i < text.length(); i = text.moveIndex32(i, 1)) {
    const auto c = static_cast<std::size_t>(text.char32At(i));
    const int byte = c < bytes_of_characters().size() ? bytes_of_characters()[c] : -1;
    if (byte < 0) return std::string(token);  // an added token, which stands for itself
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

const icu::Normalizer2& normalizer(const icu::Normalizer2* (*get)(UErrorCode&)) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* found = get(status);
  if (U_FAILURE(status))
    throw EnvironmentError(fmt::format("ICU has no normalisation data ({}): install libicu", u_errorName(status)));
  return *found;
}

icu::UnicodeString normalized(const icu::Normalizer2& by, const icu::UnicodeString& text) {
  UErrorCode status = U_ZERO_ERROR;
  icu::UnicodeString out = by.normalize(text, status);
  if (U_FAILURE(status)) throw UsageError(fmt::format("a token cannot be normalised: {}", u_errorName(status)));
  return out;
}

bool mark(UChar32 c) { return (U_GET_GC_MASK(c) & U_GC_M_MASK) != 0; }
bool blank(UChar32 c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

std::string read_whole(const std::string& path) {
  const auto stream = open_byte_stream(path);
  std::string text;
  std::array<char, 1 << 16> buffer;
  while (const std::size_t n = stream->read(buffer.data(), buffer.size())) text.append(buffer.data(), n);
  return text;
}

}  // namespace

std::string token_key(std::string_view token) {
  static const icu::Normalizer2& nfkc = normalizer(&icu::Normalizer2::getNFKCInstance);
  static const icu::Normalizer2& nfd = normalizer(&icu::Normalizer2::getNFDInstance);
  const std::string bytes = decoded(token);
  const auto text = icu::UnicodeString::fromUTF8(bytes);
  if (text.indexOf(static_cast<char16_t>(0xFFFD)) >= 0) return std::string(token);
  const icu::UnicodeString plain = normalized(nfd, normalized(nfkc, text));
  icu::UnicodeString out;
  bool in_blanks = false;
  for (std::int32_t i = 0; i < plain.length(); i = plain.moveIndex32(i, 1)) {
    const UChar32 c = plain.char32At(i);
    if (mark(c)) continue;
    if (!blank(c))
      out.append(u_tolower(c));
    else if (!in_blanks)
      out.append(static_cast<UChar32>(' '));
    in_blanks = blank(c);
  }
  if (out == icu::UnicodeString(static_cast<UChar32>(' '))) return " ";
  std::int32_t begin = 0, end = out.length();
  while (begin < end && u_isUWhiteSpace(out.char32At(begin))) begin = out.moveIndex32(begin, 1);
  while (end > begin && u_isUWhiteSpace(out.char32At(out.moveIndex32(end, -1)))) end = out.moveIndex32(end, -1);
  std::string key;
  out.tempSubStringBetween(begin, end).toUTF8String(key);
  // What stood for a blank of its own is a blank again.
  for (std::size_t at = 0; (at = key.find("\xEE\x80\x80", at)) != std::string::npos;) key.replace(at, 3, " ");
  return key.empty() ? bytes : key;
}

Vocabulary compress_vocabulary(const VocabularyOptions& options) {
  const std::string& file = options.tokenizer;
  std::string text;
  try {
    text = read_whole(file);
  } catch (const UsageError& error) {
    throw UsageError(file + ": " + error.what());
  }
  nlohmann::json json;  // sorted: a vocabulary's keys are too many for one that keeps their order
  try {
    json = nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    throw UsageError(fmt::format("{}: is no JSON: {}", file, error.what()));
  }
  const auto object = [](const nlohmann::json& at, const char* key) { return at.is_object() && at.contains(key); };
  if (!object(json, "model") || !object(json["model"], "vocab") || !json["model"]["vocab"].is_object())
    throw UsageError(file + ": /model/vocab: an object of tokens and ids is needed; is this a tokenizer.json?");
  const auto byte_level = [&](const char* key) {
    return object(json, key) && json[key].dump().find("\"ByteLevel\"") != std::string::npos;
  };
  if (!byte_level("decoder") && !byte_level("pre_tokenizer"))
    throw UsageError(file + ": /decoder: is not ByteLevel; only byte-level tokenizers are understood");

  std::vector<std::pair<std::int64_t, std::string>> tokens;
  const auto add = [&](const nlohmann::json& id, const std::string& token, const std::string& where) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= (1u << 28))
      throw UsageError(fmt::format("{}: {}: an id of 0 or more is needed", file, where));
    tokens.emplace_back(id.get<std::int64_t>(), token);
  };
  for (const auto& [token, id] : json["model"]["vocab"].items()) add(id, token, "/model/vocab/" + token);
  if (object(json, "added_tokens")) {
    for (std::size_t i = 0; i < json["added_tokens"].size(); ++i) {
      const nlohmann::json& added = json["added_tokens"][i];
      const std::string where = fmt::format("/added_tokens/{}", i);
      if (!object(added, "id") || !object(added, "content") || !added["content"].is_string())
        throw UsageError(fmt::format("{}: {}: id and content are needed", file, where));
      add(added["id"], added["content"].get<std::string>(), where + "/id");
    }
  }
  std::sort(tokens.begin(), tokens.end());
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());  // added tokens that the vocabulary has, too
  for (std::size_t i = 1; i < tokens.size(); ++i)
    if (tokens[i].first == tokens[i - 1].first)
      throw UsageError(fmt::format("{}: id {} is that of two tokens, '{}' and '{}'", file, tokens[i].first,
                                   tokens[i - 1].second, tokens[i].second));
  const auto ids = tokens.empty() ? 0 : static_cast<std::uint32_t>(tokens.back().first + 1);
  const std::uint32_t base = options.base == 0 ? ids : options.base;
  if (base > ids) throw UsageError(fmt::format("--base {}: {} has {} ids", base, file, ids));

  Vocabulary vocabulary;
  std::unordered_map<std::string, std::int32_t> classes;
  std::size_t next = 0;
  for (std::uint32_t id = 0; id < base; ++id) {
    if (next < tokens.size() && tokens[next].first == id) {
      const auto [found, fresh] =
          classes.emplace(token_key(tokens[next++].second), static_cast<std::int32_t>(vocabulary.classes));
      vocabulary.classes += fresh;
      vocabulary.map.push_back(found->second);
    } else {
      ++vocabulary.missing;
      vocabulary.map.push_back(static_cast<std::int32_t>(vocabulary.classes++));
    }
  }
  for (std::uint32_t i = 0; i < options.added_distinct; ++i)
    vocabulary.map.push_back(static_cast<std::int32_t>(vocabulary.classes++));
  return vocabulary;
}

}  // namespace slacktier

// Token compression: the map from a tokenizer's ids to the classes that Engram hashes, from its tokenizer.json.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace slacktier {

struct VocabularyOptions {
  std::string tokenizer;             // tokenizer.json of a byte-level BPE, plain, gzip or zstd
  std::uint32_t base = 0;            // only ids below it are compressed; 0: all
  std::uint32_t added_distinct = 0;  // so many ids from `base` on are classes of their own
};

struct Vocabulary {
  std::vector<std::int32_t> map;  // class of each id, in first-seen order
  std::uint32_t classes = 0;
  std::uint32_t missing = 0;  // ids below the largest that the file does not have: classes of their own
};

// Throws UsageError naming file and field for what is no such tokenizer, two tokens of one id, or a base above its ids.
Vocabulary compress_vocabulary(const VocabularyOptions& options);

// What tokens share a class by: the token's text under NFKC, NFD, without marks, in lower case, with runs of blanks as one
// and none at the ends. `token` is the tokenizer's own string, whose characters stand for bytes. A token that is no text of
// its own (part of a character) is its own key. (DeepSeek's Engram demo, as the rules of Hugging Face tokenizers'
// normalizers.)
std::string token_key(std::string_view token);

}  // namespace slacktier

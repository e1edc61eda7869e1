// Token compression on a small made tokenizer: each rule, and files that are none.
#include "harness/vocab.hpp"

#include "platforms/error.hpp"
#include "tests/catch.hpp"
#include "tests/unit/tier/scratch.hpp"

using namespace slacktier;

TEST_CASE("tokens share a key by what they say", "[vocab]") {
  CHECK(token_key("Hello") == "hello");
  CHECK(token_key("\xC4\xA0hello") == "hello");  // Ġ: a space before it
  CHECK(token_key("\xC4\xA0") == " ");           // one space alone stays
  CHECK(token_key("\xC4\x8A\xC4\xA0") == " ");   // a newline and a space are one
  CHECK(token_key("\xC4\xA0"
                  "a"
                  "\xC4\xA0\xC4\xA0"
                  "b") == "a b");
  CHECK(token_key("\xC3\x83\xC2\xA9") == "e");                     // é, as its two bytes are written: the accent is a mark
  CHECK(token_key("\xC3\xA2\xC4\xA5\xC2\xA1") == "\xE2\x83\xA1");  // a mark alone leaves nothing: its own text
  CHECK(token_key("\xC3\xA2\xC4\xA3") == "\xC3\xA2\xC4\xA3");      // part of a character: its own key
  CHECK(token_key("\xC3\xA2\xC4\xA4\xC2\xA2") == "\xE2\x82\xA2");  // three bytes, one character
  CHECK(token_key("<\xEF\xBD\x9C"
                  "A\xEF\xBD\x9C>") == "<|a|>");  // an added token stands for itself; NFKC makes | of it
}

TEST_CASE("a vocabulary's classes are handed out in the order of ids", "[vocab]") {
  test::Scratch scratch;
  const std::string file = scratch.write("tokenizer.json", R"({"model": {"vocab": {"a": 0, "A": 1, "Ġa": 2, "b": 4}},
    "decoder": {"type": "ByteLevel"}, "added_tokens": [{"id": 4, "content": "b"}, {"id": 5, "content": "B"}]})");
  const Vocabulary all = compress_vocabulary({file, 0, 0});
  CHECK(all.map == std::vector<std::int32_t>{0, 0, 0, 1, 2, 2});
  CHECK(all.classes == 3);
  CHECK(all.missing == 1);
  const Vocabulary based = compress_vocabulary({file, 3, 2});
  CHECK(based.map == std::vector<std::int32_t>{0, 0, 0, 1, 2});
  CHECK_THROWS_WITH(compress_vocabulary({file, 9, 0}), contains_text("--base 9"));
}

TEST_CASE("files that are no byte-level tokenizer are refused by name", "[vocab]") {
  test::Scratch scratch;
  const auto refusal = [&](const std::string& text) {
    const std::string file = scratch.write("t.json", text);
    try {
      compress_vocabulary({file, 0, 0});
    } catch (const std::exception& error) {
      return std::string(error.what()).substr(file.size() - 6);
    }
    return std::string("accepted");
  };
  CHECK_THAT(refusal(R"({"model": {}})"), contains_text("/model/vocab: an object of tokens and ids is needed"));
  CHECK_THAT(refusal(R"({"model": {"vocab": {"a": 0}}})"), contains_text("/decoder: is not ByteLevel"));
  CHECK_THAT(refusal(R"({"model": {"vocab": {"a": -1}}, "decoder": {"type": "ByteLevel"}})"),
             contains_text("/model/vocab/a: an id of 0 or more"));
  CHECK_THAT(refusal(R"({"model": {"vocab": {"a": 0, "b": 0}}, "decoder": {"type": "ByteLevel"}})"),
             contains_text("id 0 is that of two tokens, 'a' and 'b'"));
  CHECK_THAT(refusal("{"), contains_text("t.json"));
  CHECK_THROWS_WITH(compress_vocabulary({scratch.file("none.json"), 0, 0}), contains_text("none.json"));
}

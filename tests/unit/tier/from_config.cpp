// Table specs from models' own configs.
#include <cstdint>
#include <nlohmann/json.hpp>

#include "platforms/error.hpp"
#include "tests/catch.hpp"
#include "tests/unit/tier/scratch.hpp"
#include "tier/table.hpp"

using namespace slacktier;

namespace {

// As the released models have them, shortened to what matters and some of what does not.
const std::string v41 = R"({"architectures": ["DeepseekV41ForCausalLM"], "model_type": "deepseek_v41",
  "vision_config": {"hidden_size": 1024},
  "text_config": {"model_type": "deepseek_v41_text", "vocab_size": 129280, "hidden_size": 5120, "num_hidden_layers": 40,
    "engram_layer_ids": [1, 14], "engram_num_embeddings": [384006168, 384016682], "engram_max_ngram_size": 4,
    "engram_vocab_size": 16000000, "engram_n_heads": 8, "engram_head_dim": 256, "engram_pad_token_id": 2,
    "engram_compressed_vocab_size": 99092}})";
const std::string qwen = R"({"model_type": "qwen4_exp", "text_config": {"model_type": "qwen4_exp_text", "vocab_size": 248320,
    "eos_token_id": [248044, 248045], "hidden_size": 2560, "ngram_size": 3, "ngram_vocab_size_base": 20000000,
    "heads_per_ngram": 8, "split_ngram_parts": 128, "make_ngram_vocab_size_divisible_by": 128, "ple_layer_ids": [2],
    "ple_embed_dim": 2560}})";
const std::string gemma = R"({"model_type": "gemma4", "text_config": {"model_type": "gemma4_text", "vocab_size": 262144,
    "num_hidden_layers": 42, "hidden_size_per_layer_input": 256, "vocab_size_per_layer_input": 262144,
    "eos_token_id": 1}, "vocab_size": 7})";
const std::string longcat = R"({"architectures": ["LongcatFlashNgramForCausalLM"], "vocab_size": 131072,
    "hidden_size": 3072, "num_layers": 14, "ngram_vocab_size_ratio": 78, "emb_neighbor_num": 4, "emb_split_num": 4,
    "eos_token_id": 2})";

std::string changed(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

struct Folder : test::Scratch {
  DerivedSpec derive(const std::string& config, const std::string& hash = {}) const {
    return table_spec_from_config(write("config.json", config), "mine", hash);
  }
  TableSpec load(const std::string& config) const { return load_table_spec(write("spec.json", derive(config).text)); }
  std::string error_of(const std::string& config) const {
    try {
      derive(config);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "no error";
  }
};

// The built-in table under the derived one's name.
std::string fingerprint_as_mine(const std::string& built_in) {
  TableSpec spec = load_table_spec(built_in);
  spec.name = "mine";
  return spec.fingerprint();
}

}  // namespace

TEST_CASE("released models' configs give the built-in tables", "[from_config]") {
  const Folder folder;
  CHECK(folder.load(v41).fingerprint() == fingerprint_as_mine("engram_v41"));
  CHECK(folder.load(qwen).fingerprint() == fingerprint_as_mine("qwen38_ple"));
  CHECK(folder.load(gemma).fingerprint() == fingerprint_as_mine("gemma4_e4b_ple"));
  CHECK(folder.load(longcat).fingerprint() == fingerprint_as_mine("longcat_flash_lite"));
  for (const auto& [config, name] : {std::pair{v41, "engram_v41"}, std::pair{qwen, "qwen38_ple"},
                                     std::pair{gemma, "gemma4_e4b_ple"}, std::pair{longcat, "longcat_flash_lite"}}) {
    const TableSpec derived = folder.load(config), known = load_table_spec(name);
    CHECK(derived.tensors.column_split == known.tensors.column_split);
    CHECK(derived.tensors.weight.front() == known.tensors.weight.front());
  }
}

TEST_CASE("what a config does not say is said", "[from_config]") {
  const Folder folder;
  REQUIRE(folder.derive(v41).notes.size() == 1);
  CHECK_THAT(folder.derive(v41).notes[0], contains_text("seed 0"));
  CHECK_THAT(folder.derive(qwen).notes.at(0), contains_text("1234"));
  CHECK(folder.derive(changed(qwen, "\"ngram_size\"", "\"seed\": 1234, \"ngram_size\"")).notes.empty());
  CHECK_THAT(folder.derive(changed(longcat, "\"eos_token_id\": 2", "\"eos_token_id\": null")).notes.at(0),
             contains_text("eos_token_id"));
}

TEST_CASE("names that fields have had are found", "[from_config]") {
  const Folder folder;
  const auto old = changed(
      changed(changed(longcat, "ngram_vocab_size_ratio", "oe_vocab_size_ratio"), "emb_neighbor_num", "oe_neighbor_num"),
      "emb_split_num", "oe_split_num");
  CHECK(folder.load(old).fingerprint() == fingerprint_as_mine("longcat_flash_lite"));
  // Without a text_config all fields lie at the top.
  nlohmann::json flat = nlohmann::json::parse(v41)["text_config"];
  CHECK(folder.load(flat.dump()).fingerprint() == fingerprint_as_mine("engram_v41"));
}

TEST_CASE("a config without a known table, or with half of one, is answered by name", "[from_config]") {
  const Folder folder;
  const auto complains = [&](const std::string& config, const std::vector<std::string>& parts) {
    const std::string error = folder.error_of(config);
    INFO(error);
    CHECK(error.find("config.json") != std::string::npos);
    for (const std::string& part : parts) CHECK(error.find(part) != std::string::npos);
  };
  complains(R"({"model_type": "llama", "vocab_size": 32000})",
            {"\"llama\"", "engram_layer_ids (engram)", "ple_layer_ids (ple)", "hidden_size_per_layer_input (token_id)",
             "ngram_vocab_size_ratio (polynomial)", "no text_config"});
  complains(R"({"model_type": "qwen4_exp", "text_config": {"ple_layer_ids": []}})", {"\"qwen4_exp\"", "in its text_config"});
  complains(changed(v41, "\"engram_n_heads\": 8, ", ""), {"\"engram_n_heads\" is missing", "in its text_config"});
  complains(changed(v41, "\"engram_compressed_vocab_size\": 99092", "\"x\": 1"),
            {"engram_compressed_vocab_size\" or \"compressed_vocab_size"});
  complains(changed(v41, "384006168", "384006169"), {"engram_num_embeddings", "[384006168, 384016682]"});
  complains(changed(gemma, "input\": 256", "input\": 0"), {"no per-layer embeddings"});
  complains(changed(gemma, "\"num_hidden_layers\": 42", "\"num_hidden_layers\": \"42\""), {"\"num_hidden_layers\": \"42\""});
  complains(changed(longcat, "\"hidden_size\": 3072", "\"hidden_size\": 3072, \"ngram_exclude_sp_token\": true"),
            {"ngram_exclude_sp_token"});
  complains("{\"vocab_size\": 1,}", {"config.json:1: not JSON"});
  complains("[]", {"not a JSON object"});
  complains(longcat + std::string(1, '\0') + "{}", {"a NUL"});
  complains(R"({"text_config": 3})", {"text_config"});
  CHECK_THROWS_WITH(table_spec_from_config("/nowhere/config.json"), contains_text("/nowhere/config.json"));
  CHECK_THROWS_WITH(folder.derive(gemma, "engrim"), contains_text("unknown hash family"));
  CHECK_THROWS_WITH(folder.derive(gemma, "engram"), contains_text("\"engram_layer_ids\" is missing"));

  nlohmann::json both = nlohmann::json::parse(gemma);
  both["text_config"].update(nlohmann::json::parse(longcat));
  complains(both.dump(), {"several", "token_id, polynomial", "--hash"});
  CHECK_THAT(folder.derive(both.dump(), "token_id").text, contains_text("\"hash\": \"token_id\""));
}

TEST_CASE("where a checkpoint holds the rows is read strictly", "[from_config]") {
  const Folder folder;
  const auto spec = [&](const std::string& rows) {
    return load_table_spec(folder.write("t.json", R"({"name": "t", "hash": "token_id", "record": "bf16", "vocab_size": 9,
      "num_hidden_layers": 2, "hidden_size_per_layer_input": 32, "vocab_size_per_layer_input": 9, "rows": )" +
                                                      rows + "}"));
  };
  const TableSpec table = spec(R"({"weight": ["a.{layer}", "b"], "scale": "s", "column_split": true})");
  CHECK(table.tensors.weight == std::vector<std::string>{"a.{layer}", "b"});
  CHECK(table.tensors.scale == std::vector<std::string>{"s"});
  CHECK(table.tensors.column_split);
  CHECK(table.fingerprint() == spec(R"({"weight": "c"})").fingerprint());  // which rows there are does not depend on it
  CHECK_THROWS_WITH(spec("{}"), contains_text("rows: field \"weight\": is missing"));
  CHECK_THROWS_WITH(spec(R"({"weight": []})"), contains_text("empty list"));
  CHECK_THROWS_WITH(spec(R"({"weight": 3})"), contains_text("is not a text"));
  CHECK_THROWS_WITH(spec(R"({"weight": "w", "column_split": 1})"), contains_text("true or false"));
  CHECK_THROWS_WITH(spec(R"({"weight": "w", "weigth": "w"})"), contains_text("\"weigth\": is unknown"));
  CHECK_THROWS_WITH(spec("3"), contains_text("not an object"));
}

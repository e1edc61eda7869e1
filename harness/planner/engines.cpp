// What serving engines offer today, from their public threads; one entry each, newest knowledge wins.
#include <fmt/format.h>

#include <algorithm>

#include "harness/planner.hpp"

namespace slacktier {
namespace {

struct EngineOffer {
  const char* hash;    // table family
  const char* source;  // where all layers lie
  const char* sentence;
};

constexpr EngineOffer offers[] = {
    {"engram", "dram",
     "vLLM (its default; VLLM_PLE_CPU_OFFLOAD=1, vllm-project/vllm#57910) and SGLang "
     "(SGLANG_ENABLE_DSV41_ENGRAM_HOST_TABLE=1, sgl-project/sglang#39666)"},
    {"engram", "hbm",
     "SGLang (its default, sgl-project/sglang#39666) and vLLM (VLLM_PLE_CPU_OFFLOAD=0, vllm-project/vllm#57910)"},
};

}  // namespace

std::string offered_by_engines(const std::string& hash, const std::vector<std::string>& sources) {
  const bool alike = !sources.empty() && std::all_of(sources.begin(), sources.end(),
                                                     [&](const std::string& source) { return source == sources.front(); });
  if (alike)
    for (const EngineOffer& offer : offers)
      if (hash == offer.hash && sources.front() == offer.source) return fmt::format("Offered by {}.", offer.sentence);
  std::string none = "No released engine that we know of offers this placement";
  if (hash == "engram")
    none +=
        "; they hold all of the tables in host or in device memory (tables on disk: vllm-project/vllm#56757, not merged)";
  return none + ".";
}

}  // namespace slacktier

// What a row index depends on besides its own token: the map of raw ids and the look-back.
#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <fstream>

#include "platforms/error.hpp"
#include "tier/hash.hpp"

namespace slacktier {

TokenMap TokenMap::load(const std::string& path, const TableSpec& spec) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) throw UsageError(path + ": the token map cannot be opened");
  const auto bytes = static_cast<std::uint64_t>(file.tellg());
  if (bytes != std::uint64_t{4} * spec.raw_vocabulary) {
    throw UsageError(fmt::format("{}: {} bytes, but table {} needs {} (an int32 for each of its {} token ids)", path, bytes,
                                 spec.name, std::uint64_t{4} * spec.raw_vocabulary, spec.raw_vocabulary));
  }
  std::vector<unsigned char> raw(bytes);
  file.seekg(0);
  if (!file.read(reinterpret_cast<char*>(raw.data()), static_cast<std::streamsize>(bytes))) {
    throw UsageError(path + ": the token map cannot be read");
  }
  TokenMap result;
  result.map_.resize(spec.raw_vocabulary);
  for (std::size_t i = 0; i < result.map_.size(); ++i) {
    const unsigned char* const at = raw.data() + 4 * i;
    const std::uint32_t id = at[0] | at[1] << 8 | at[2] << 16 | static_cast<std::uint32_t>(at[3]) << 24;
    if (id >= spec.vocabulary) {
      throw UsageError(fmt::format("{}: entry {} is {}, but table {} has the ids 0 to {}", path, i,
                                   static_cast<std::int32_t>(id), spec.name, spec.vocabulary - 1));
    }
    result.map_[i] = id;
  }
  return result;
}

void gather_context(const TableSpec& spec, std::span<const std::uint32_t> sequence, std::size_t first, std::size_t tokens,
                    std::uint32_t* context) {
  const auto depth = static_cast<std::size_t>(spec.max_ngram);
  const auto pad = static_cast<std::uint32_t>(spec.pad);
  for (std::size_t at = first; at < first + tokens; ++at) {
    *context++ = sequence[at];
    // A segment's last token is its segment_end, so that one still sees back, and whoever meets it looking back sees no
    // further: it and all before it are pad.
    bool inside = true;
    for (std::size_t back = 1; back < depth; ++back) {
      inside = inside && back <= at && static_cast<std::int64_t>(sequence[at - back]) != spec.segment_end;
      *context++ = inside ? sequence[at - back] : pad;
    }
  }
}

}  // namespace slacktier

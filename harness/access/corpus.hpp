// Sessions as rows of one layer, one column an n-gram order. Private to harness.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "harness/access.hpp"
#include "tier/table.hpp"

namespace slacktier {

struct CorpusSession {
  std::string group;
  std::size_t first = 0, tokens = 0;  // of Corpus::ids
};

struct Corpus {
  std::vector<int> orders;         // rising
  std::vector<std::size_t> heads;  // columns of each order
  std::uint64_t table_rows = 0;    // of the layer
  std::size_t columns = 0;         // of the table
  std::vector<CorpusSession> sessions;
  std::vector<std::uint32_t> ids;    // hash ids, session after session
  std::vector<std::uint8_t> decode;  // of each token
  std::vector<std::uint32_t> rows;   // [tokens][orders]: global row of each order's first column

  std::span<const std::uint32_t> rows_of(std::size_t token) const {
    return std::span(rows).subspan(token * orders.size(), orders.size());
  }
};

Corpus read_corpus(const AccessOptions& options);

}  // namespace slacktier

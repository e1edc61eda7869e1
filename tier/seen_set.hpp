// Which rows of a table a body of text has ever asked for: one bit a row. A tier may deliver a row that was never seen as
// zeros without reading it ("lossy skipping").
//
// File: 8 bytes "SLTSEEN1", u32 length of the header, the header as JSON (table, fingerprint, hash, ranks, shard_map,
// tokens, sessions, origin, shards [{layer, rank, rows, seen, bytes, encoding, checksum}]), then each shard's bitmap in that
// order: bit r % 64 of little-endian word r / 64 is local row r; zstd where that is smaller. Checksums are XXH3-64 of what
// is stored.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "platforms/memory.hpp"
#include "tier/hash.hpp"
#include "tier/shard.hpp"
#include "tier/table.hpp"

namespace slacktier {

struct SeenShard {
  int layer = 0;
  std::uint32_t rank = 0;
  std::uint64_t rows = 0, seen = 0;
  std::uint64_t bytes = 0;  // as stored
  std::string encoding;     // "raw" or "zstd"
  std::string checksum;     // 16 hexadecimal digits
};

struct SeenSetHeader {
  std::string table, fingerprint, hash, origin;
  std::uint32_t ranks = 1;
  ShardMap shard_map = ShardMap::contiguous;
  std::uint64_t tokens = 0, sessions = 0;
  std::vector<SeenShard> shards;
};

// Throws UsageError naming the file and what is wrong with it: no seen-set, cut short, damaged, a field missing.
SeenSetHeader read_seen_set_header(const std::string& path);

// One rank's bitmaps, in memory.
class SeenSet {
 public:
  // Throws UsageError naming the field that differs (table, fingerprint, hash, ranks, shard_map, rank) or what
  // read_seen_set_header says.
  static std::shared_ptr<const SeenSet> load(const std::string& path, const TableSpec& spec, ShardMap map,
                                             std::uint32_t ranks, std::uint32_t rank);

  // At least (rows + 63) / 64 words of a layer of the spec.
  std::span<const std::uint64_t> bits(std::size_t layer_index) const;
  bool seen(std::size_t layer_index, std::uint64_t local_row) const {
    return (bits(layer_index)[local_row / 64] >> (local_row % 64) & 1) != 0;
  }
  std::size_t bytes() const;
  const SeenSetHeader& header() const { return header_; }

 private:
  SeenSetHeader header_;
  std::vector<HostMemory> maps_;  // by layer of the spec
};

// Collects the rows of all ranks. Memory is one bit a row of the whole table.
class SeenSetBuilder {
 public:
  SeenSetBuilder(const TableSpec& spec, ShardMap map, std::uint32_t ranks);
  ~SeenSetBuilder();

  // Tokens of one session: [tokens][max_ngram] hash ids as gather_context gives them.
  void add(std::span<const std::uint32_t> context);
  void end_session() { ++header_.sessions; }
  // Written beside `path` and renamed over it: the whole file or none. `origin` says where the tokens came from. Returns the
  // header as written. Throws std::system_error.
  SeenSetHeader write(const std::string& path, const std::string& origin);

 private:
  struct Part;  // a rank's rows of one column
  const TableSpec& spec_;
  std::unique_ptr<RowHash> hash_;
  SeenSetHeader header_;
  std::vector<HostMemory> maps_;                       // [layer][rank]
  std::vector<std::vector<std::vector<Part>>> parts_;  // [layer][column]: who owns which rows
  std::vector<std::uint32_t> rows_;
};

}  // namespace slacktier

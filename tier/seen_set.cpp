#include "tier/seen_set.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <zstd.h>

#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "platforms/error.hpp"
#include "tier/json_fields.hpp"

namespace slacktier {
namespace {

constexpr char magic[] = "SLTSEEN1";
constexpr std::size_t magic_bytes = 8;
constexpr std::uint32_t most_header_bytes = 1 << 24;

std::size_t words(std::uint64_t rows) { return static_cast<std::size_t>((rows + 63) / 64); }
std::string checksum_of(const void* data, std::size_t bytes) { return fmt::format("{:016x}", XXH3_64bits(data, bytes)); }

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw UsageError(fmt::format("{}: {}", path, what));
}

std::string header_text(const SeenSetHeader& header) {
  JsonValue json = {{"table", header.table},
                    {"fingerprint", header.fingerprint},
                    {"hash", header.hash},
                    {"ranks", header.ranks},
                    {"shard_map", to_string(header.shard_map)},
                    {"tokens", header.tokens},
                    {"sessions", header.sessions},
                    {"origin", header.origin},
                    {"shards", JsonValue::array()}};
  for (const SeenShard& shard : header.shards)
    json["shards"].push_back({{"layer", shard.layer},
                              {"rank", shard.rank},
                              {"rows", shard.rows},
                              {"seen", shard.seen},
                              {"bytes", shard.bytes},
                              {"encoding", shard.encoding},
                              {"checksum", shard.checksum}});
  return json.dump();
}

template <class T>
void need(JsonFields& fields, const char* key, T& value) {
  if (!fields.has(key)) fields.fail(key, "is missing");
  fields.read(key, value);
}

SeenSetHeader parse_header(std::string_view text, const std::string& path) {
  const JsonValue json = parse_strict_json(text, path);
  JsonFields fields(json, path + ": ");
  SeenSetHeader header;
  std::string map;
  need(fields, "table", header.table);
  need(fields, "fingerprint", header.fingerprint);
  need(fields, "hash", header.hash);
  need(fields, "ranks", header.ranks);
  need(fields, "shard_map", map);
  header.shard_map = parse_shard_map(map);
  need(fields, "tokens", header.tokens);
  need(fields, "sessions", header.sessions);
  need(fields, "origin", header.origin);
  for (const JsonValue& entry : fields.list("shards")) {
    JsonFields shard_fields(entry, fields.place("shards"));
    SeenShard shard;
    need(shard_fields, "layer", shard.layer);
    need(shard_fields, "rank", shard.rank);
    need(shard_fields, "rows", shard.rows);
    need(shard_fields, "seen", shard.seen);
    need(shard_fields, "bytes", shard.bytes);
    need(shard_fields, "encoding", shard.encoding);
    need(shard_fields, "checksum", shard.checksum);
    shard_fields.finish();
    header.shards.push_back(shard);
  }
  fields.finish();
  return header;
}

// Reads the header and leaves the stream at the first bitmap.
SeenSetHeader open_header(std::ifstream& file, const std::string& path) {
  if (!file) refuse(path, "the seen-set cannot be opened");
  char start[magic_bytes] = {};
  std::uint32_t length = 0;
  file.read(start, magic_bytes);
  file.read(reinterpret_cast<char*>(&length), sizeof length);
  if (!file || std::memcmp(start, magic, magic_bytes) != 0) refuse(path, "is no seen-set");
  if (length > most_header_bytes) refuse(path, "the header is damaged: build the seen-set again");
  std::string text(length, '\0');
  file.read(text.data(), length);
  if (!file) refuse(path, "is cut short: build the seen-set again");
  return parse_header(text, path);
}

}  // namespace

SeenSetHeader read_seen_set_header(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return open_header(file, path);
}

std::shared_ptr<const SeenSet> SeenSet::load(const std::string& path, const TableSpec& spec, ShardMap map,
                                             std::uint32_t ranks, std::uint32_t rank) {
  std::ifstream file(path, std::ios::binary);
  auto set = std::make_shared<SeenSet>();
  SeenSetHeader& header = set->header_;
  header = open_header(file, path);
  const auto same = [&](const char* field, const std::string& has, const std::string& wants) {
    if (has != wants) refuse(path, fmt::format("{} is {}, this run has {}: build a seen-set for it", field, has, wants));
  };
  same("table", header.table, spec.name);
  same("hash", header.hash, spec.hash);
  same("fingerprint (geometry and seed of the table)", header.fingerprint, spec.fingerprint());
  same("shard_map", to_string(header.shard_map), to_string(map));
  same("ranks", std::to_string(header.ranks), std::to_string(ranks));

  set->maps_.resize(spec.layers.size());
  std::vector<bool> found(spec.layers.size());
  std::vector<char> stored;
  for (const SeenShard& shard : header.shards) {
    if (shard.rank != rank) {
      file.seekg(static_cast<std::streamoff>(shard.bytes), std::ios::cur);
      continue;
    }
    const std::size_t l = spec.layer_index(shard.layer);
    const Shard wanted = make_shard(spec, l, map, ranks, rank);
    if (shard.rows != wanted.rows)
      refuse(path, fmt::format("rows of layer {} are {}, this table's are {}", shard.layer, shard.rows, wanted.rows));
    HostMemory bits(std::max<std::size_t>(words(shard.rows), 1) * sizeof(std::uint64_t));
    const std::size_t bytes = words(shard.rows) * sizeof(std::uint64_t);
    if (shard.bytes > bytes + 1024) refuse(path, "the header is damaged: build the seen-set again");
    stored.resize(shard.bytes);
    file.read(stored.data(), static_cast<std::streamsize>(stored.size()));
    if (!file) refuse(path, "is cut short: build the seen-set again");
    const auto damaged = [&] {
      refuse(path, fmt::format("layer {} rank {} is damaged (checksum): build the seen-set again", shard.layer, rank));
    };
    if (checksum_of(stored.data(), stored.size()) != shard.checksum) damaged();
    if (shard.encoding == "raw" && stored.size() == bytes) {
      std::memcpy(bits.data(), stored.data(), bytes);
    } else if (shard.encoding == "zstd") {
      if (ZSTD_decompress(bits.data(), bytes, stored.data(), stored.size()) != bytes) damaged();
    } else {
      refuse(path, fmt::format("encoding '{}' is unknown; this version reads raw and zstd", shard.encoding));
    }
    set->maps_[l] = std::move(bits);
    found[l] = true;
  }
  for (std::size_t l = 0; l < found.size(); ++l)
    if (!found[l]) refuse(path, fmt::format("holds nothing for layer {} rank {}", spec.layers[l].layer, rank));
  return set;
}

std::span<const std::uint64_t> SeenSet::bits(std::size_t layer_index) const {
  const HostMemory& map = maps_[layer_index];
  return {static_cast<const std::uint64_t*>(map.data()), map.bytes() / sizeof(std::uint64_t)};
}

std::size_t SeenSet::bytes() const {
  std::size_t sum = 0;
  for (const HostMemory& map : maps_) sum += map.bytes();
  return sum;
}

struct SeenSetBuilder::Part {
  std::uint32_t first = 0, rows = 0, local = 0;
  std::uint64_t* bits = nullptr;
};

SeenSetBuilder::~SeenSetBuilder() = default;

SeenSetBuilder::SeenSetBuilder(const TableSpec& spec, ShardMap map, std::uint32_t ranks)
    : spec_(spec), hash_(make_hash(spec)) {
  header_.table = spec.name;
  header_.fingerprint = spec.fingerprint();
  header_.hash = spec.hash;
  header_.ranks = ranks;
  header_.shard_map = map;
  parts_.resize(spec.layers.size());
  for (std::size_t l = 0; l < spec.layers.size(); ++l) {
    parts_[l].resize(spec.rows_per_token());
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      const Shard shard = make_shard(spec, l, map, ranks, rank);
      maps_.emplace_back(std::max<std::size_t>(words(shard.rows), 1) * sizeof(std::uint64_t));
      auto* bits = static_cast<std::uint64_t*>(maps_.back().data());
      for (std::size_t c = 0; c < shard.first.size(); ++c)
        if (shard.first[c] < shard.last[c])
          parts_[l][c].push_back({shard.first[c], shard.last[c] - shard.first[c], shard.local[c], bits});
      header_.shards.push_back({spec.layers[l].layer, rank, shard.rows, 0, 0, "", ""});
    }
  }
}

void SeenSetBuilder::add(std::span<const std::uint32_t> context) {
  const auto order = static_cast<std::size_t>(spec_.max_ngram);
  const std::size_t columns = spec_.rows_per_token();
  constexpr std::size_t wave = 4096;
  const std::size_t tokens = context.size() / order;
  rows_.resize(wave * columns);
  for (std::size_t begin = 0; begin < tokens; begin += wave) {
    const std::size_t n = std::min(wave, tokens - begin);
    for (std::size_t l = 0; l < parts_.size(); ++l) {
      hash_->rows(l, context.data() + begin * order, n, rows_.data());
      for (std::size_t i = 0; i < n * columns; ++i)
        for (const Part& part : parts_[l][i % columns])
          if (const std::uint32_t offset = rows_[i] - part.first; offset < part.rows) {
            const std::uint32_t row = offset + part.local;
            part.bits[row / 64] |= std::uint64_t{1} << (row % 64);
          }
    }
  }
  header_.tokens += tokens;
}

SeenSetHeader SeenSetBuilder::write(const std::string& path, const std::string& origin) {
  header_.origin = origin;
  std::vector<std::vector<char>> stored(maps_.size());
  for (std::size_t m = 0; m < maps_.size(); ++m) {
    SeenShard& shard = header_.shards[m];
    const auto* bits = static_cast<const std::uint64_t*>(maps_[m].data());
    const std::size_t bytes = words(shard.rows) * sizeof(std::uint64_t);
    shard.seen = 0;
    for (std::size_t w = 0; w < words(shard.rows); ++w) shard.seen += static_cast<std::uint64_t>(std::popcount(bits[w]));
    stored[m].resize(ZSTD_compressBound(bytes));
    const std::size_t packed = ZSTD_compress(stored[m].data(), stored[m].size(), bits, bytes, 3);
    shard.encoding = !ZSTD_isError(packed) && packed < bytes ? "zstd" : "raw";
    if (shard.encoding == "zstd")
      stored[m].resize(packed);
    else
      stored[m].assign(reinterpret_cast<const char*>(bits), reinterpret_cast<const char*>(bits) + bytes);
    stored[m].shrink_to_fit();
    shard.bytes = stored[m].size();
    shard.checksum = checksum_of(stored[m].data(), stored[m].size());
  }
  const std::string text = header_text(header_);
  const auto length = static_cast<std::uint32_t>(text.size());
  const std::string part = path + ".part";
  const int fd = ::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) throw_errno("open " + part);
  const auto put = [&](const void* data, std::size_t bytes) {
    for (const char* at = static_cast<const char*>(data); bytes > 0;) {
      const ssize_t written = ::write(fd, at, bytes);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) {
        const int error = errno;
        ::close(fd);
        ::unlink(part.c_str());
        throw std::system_error(error, std::generic_category(), "write " + part);
      }
      at += written;
      bytes -= static_cast<std::size_t>(written);
    }
  };
  put(magic, magic_bytes);
  put(&length, sizeof length);
  put(text.data(), text.size());
  for (const auto& bytes : stored) put(bytes.data(), bytes.size());
  const bool synced = ::fsync(fd) == 0;
  ::close(fd);
  if (!synced) throw_errno("fsync " + part);
  if (::rename(part.c_str(), path.c_str()) != 0) throw_errno("rename " + part);
  return header_;
}

}  // namespace slacktier

// One cache policy over a stream of lookups in a file, timed: what against_libcachesim.py runs beside libCacheSim.
//
// bench_caches make FILE LOOKUPS          rows that generated agent sessions ask V4.1's layer 14 for, one after another
// bench_caches run FILE POLICY CAPACITY   lookups, hits and seconds, the file's reading included
// bench_caches curve FILE                 the exact LRU curve's time and memory
// bench_caches limit FILE CAPACITY        the file read, and one line of a table of an LruCache's size for each lookup: what
// no
//                                         cache that looks rows up in memory can beat
//
// The file is libCacheSim's oracleGeneral: 24 bytes a request (time, id, size 1, next lookup, which is not filled in).
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>

#include "harness/cache_policy.hpp"
#include "harness/generator.hpp"
#include "harness/interleave.hpp"
#include "harness/lru_cache.hpp"
#include "harness/stack_distances.hpp"
#include "platforms/error.hpp"
#include "platforms/memory.hpp"
#include "tier/hash.hpp"

namespace {

using namespace slacktier;

#pragma pack(push, 1)
struct Request {
  std::uint32_t time;
  std::uint64_t id;
  std::uint32_t size;
  std::int64_t next;
};
#pragma pack(pop)
static_assert(sizeof(Request) == 24);

// The file's rows, in blocks.
class Stream {
 public:
  explicit Stream(const std::string& path) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) throw UsageError(path + ": cannot open");
    bytes_ = static_cast<std::size_t>(::lseek(file, 0, SEEK_END));
    at_ = ::mmap(nullptr, bytes_, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
    ::close(file);
    if (at_ == MAP_FAILED) throw UsageError(path + ": cannot map");
    ::madvise(at_, bytes_, MADV_SEQUENTIAL);
  }
  ~Stream() { ::munmap(at_, bytes_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  std::size_t lookups() const { return bytes_ / sizeof(Request); }
  template <class Do>
  void each_block(Do&& each) const {
    constexpr std::size_t block = 4096;
    std::uint32_t rows[block];
    const auto* requests = static_cast<const Request*>(at_);
    for (std::size_t i = 0; i < lookups(); i += block) {
      const std::size_t n = std::min(block, lookups() - i);
      for (std::size_t k = 0; k < n; ++k) rows[k] = static_cast<std::uint32_t>(requests[i + k].id);
      each(std::span<const std::uint32_t>(rows, n));
    }
  }

 private:
  void* at_;
  std::size_t bytes_;
};

// Rows numbered in the order of their first lookup, as simulated policies take them, and how many there are.
std::pair<std::vector<std::uint32_t>, std::uint32_t> dense(const Stream& stream) {
  const HostMemory memory((std::size_t{1} << 32) * sizeof(std::uint32_t));  // of each row; few of its pages are touched
  auto* number = static_cast<std::uint32_t*>(memory.data());
  std::vector<std::uint32_t> ids;
  ids.reserve(stream.lookups());
  std::uint32_t distinct = 0;
  stream.each_block([&](std::span<const std::uint32_t> rows) {
    for (const std::uint32_t row : rows) {
      if (number[row] == 0) number[row] = ++distinct;
      ids.push_back(number[row] - 1);
    }
  });
  return {std::move(ids), distinct};
}

void make(const std::string& path, std::uint64_t lookups) {
  const TableSpec spec = load_table_spec("engram_v41");
  const TokenMap map;
  const auto hash = make_hash(spec);
  const auto source = generated_sessions("agent", 1);
  InterleaveOptions options;
  options.sessions = 64;
  Interleaver interleaver(*source, spec, map, options);
  std::FILE* out = std::fopen(path.c_str(), "wb");
  if (!out) throw UsageError(path + ": cannot write");
  StepTokens step;
  std::vector<std::uint32_t> rows;
  std::vector<Request> requests;
  const std::size_t layer = spec.layer_index(14), columns = spec.rows_per_token();
  for (std::uint64_t written = 0; written < lookups;) {
    interleaver.next(step);
    requests.clear();
    const auto add = [&](const std::vector<std::uint32_t>& context, std::size_t tokens,
                         const std::vector<std::uint8_t>& active) {
      rows.resize(tokens * columns);
      hash->rows(layer, context.data(), tokens, rows.data());
      for (std::size_t i = 0; i < rows.size() && written < lookups; ++i)
        if (active.empty() || active[i / columns]) {
          requests.push_back({static_cast<std::uint32_t>(written >> 10), rows[i], 1, -1});
          ++written;
        }
    };
    add(step.prefill_context, step.prefill_tokens, {});
    add(step.context, step.active.size(), step.active);
    if (std::fwrite(requests.data(), sizeof(Request), requests.size(), out) != requests.size())
      throw UsageError(path + ": cannot write");
  }
  if (std::fclose(out) != 0) throw UsageError(path + ": cannot write");
}

double seconds(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void report(const Stream& stream, double time, const std::string& more) {
  fmt::print("{{\"lookups\": {}, \"seconds\": {:.6f}, {}}}\n", stream.lookups(), time, more);
}

int run(const std::vector<std::string>& words) {
  const std::string command = words.empty() ? "" : words[0];
  if (command == "make" && words.size() == 3) {
    make(words[1], std::stoull(words[2]));
    return 0;
  }
  if (command == "run" && words.size() == 4) {
    const Stream stream(words[1]);
    const std::uint64_t capacity = std::stoull(words[3]);
    std::uint64_t hits = 0;
    double time = 0;
    if (words[2] == "lru") {
      time = seconds([&] {
        LruCache cache(capacity);
        stream.each_block([&](std::span<const std::uint32_t> rows) { hits += cache.look_up(rows); });
      });
    } else {
      const auto [ids, distinct] = dense(stream);
      CachePolicyOptions options;
      options.ids = distinct;
      options.capacity = static_cast<std::uint32_t>(capacity);
      time = seconds([&, &lookups = ids] {
        const auto policy = make_cache_policy(words[2], options);
        std::uint8_t hit = 0;
        for (const std::uint32_t& id : lookups) {
          policy->step({&id, 1}, {&hit, 1});
          hits += hit;
        }
      });
    }
    report(stream, time, fmt::format("\"hits\": {}", hits));
    return 0;
  }
  if (command == "curve" && words.size() == 2) {
    const Stream stream(words[1]);
    StackDistances stack;
    std::uint32_t distance = 0;
    double time = 0;
    std::size_t most = 0;
    time = seconds([&] {
      stream.each_block([&](std::span<const std::uint32_t> rows) {
        for (const std::uint32_t& row : rows) stack.step({&row, 1}, {&distance, 1});
        most = std::max(most, stack.bytes());
      });
    });
    report(stream, time,
           fmt::format("\"distinct\": {}, \"bytes_per_row\": {:.2f}", stack.distinct(),
                       static_cast<double>(most) / static_cast<double>(stack.distinct())));
    return 0;
  }
  if (command == "limit" && words.size() == 3) {
    const Stream stream(words[1]);
    const std::size_t lines = LruCache(std::stoull(words[2])).bytes() / 64;
    const HostMemory memory(lines * 64);
    auto* words_of = static_cast<std::uint64_t*>(memory.data());
    std::memset(words_of, 1, lines * 64);
    std::uint64_t sum = 0;
    const double time = seconds([&] {
      stream.each_block([&](std::span<const std::uint32_t> rows) {
        const auto place = [&](std::uint32_t row) { return ((row * 0x9E3779B97F4A7C15u >> 32) * lines >> 32) * 8; };
        for (std::size_t i = 0; i < rows.size(); ++i) {
          if (i + 24 < rows.size()) __builtin_prefetch(&words_of[place(rows[i + 24])], 1);
          sum += ++words_of[place(rows[i])];
        }
      });
    });
    report(stream, time, fmt::format("\"sum\": {}", sum % 10));
    return 0;
  }
  fmt::print(stderr,
             "usage: bench_caches make FILE LOOKUPS | run FILE POLICY CAPACITY | curve FILE | limit FILE CAPACITY\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_caches: {}\n", error.what());
    return 2;
  }
}

#include "harness/anonymise.hpp"

#include <fmt/format.h>
#include <sys/random.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "harness/sessions.hpp"
#include "platforms/error.hpp"
#include "reports/json.hpp"
#include "tier/hash.hpp"

namespace slacktier {
namespace {

// Numbers that nobody can repeat.
class Secret {
 public:
  std::uint64_t below(std::uint64_t bound) {
    const std::uint64_t all = UINT64_MAX - UINT64_MAX % bound;
    for (;;)
      if (const std::uint64_t value = draw(); value < all) return value % bound;
  }
  void shuffle(std::vector<std::uint32_t>& values) {
    for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[below(i)]);
  }

 private:
  std::uint64_t draw() {
    if (next_ == buffer_.size()) {
      for (std::size_t done = 0; done < sizeof buffer_;) {
        const auto got = ::getrandom(reinterpret_cast<char*>(buffer_.data()) + done, sizeof buffer_ - done, 0);
        if (got > 0) done += static_cast<std::size_t>(got);
      }
      next_ = 0;
    }
    return buffer_[next_++];
  }
  std::array<std::uint64_t, 32> buffer_;
  std::size_t next_ = buffer_.size();
};

// Contexts numbered as they come: (…((t0, t1), t2)…), each pair in its level's map.
class Contexts {
 public:
  Contexts(std::size_t order) : order_(order), levels_(order) {}
  // Adds what is new.
  std::uint32_t number(const std::uint32_t* context) {
    std::uint32_t node = 0;
    for (std::size_t k = 0; k < order_; ++k) {
      auto& level = levels_[k];
      const std::uint64_t key = std::uint64_t{node} << 32 | context[k];
      const auto [at, fresh] = level.emplace(key, static_cast<std::uint32_t>(level.size()));
      node = at->second;
      if (fresh && k + 1 == order_) tokens_.insert(tokens_.end(), context, context + order_);
    }
    return node;
  }
  std::size_t count() const { return tokens_.size() / order_; }
  std::span<const std::uint32_t> tokens() const { return tokens_; }  // [count][order]

 private:
  std::size_t order_;
  std::vector<std::unordered_map<std::uint64_t, std::uint32_t>> levels_;
  std::vector<std::uint32_t> tokens_;
};

// A file that takes its name when it is complete.
class OutFile {
 public:
  explicit OutFile(std::string path)
      : path_(std::move(path)), part_(path_ + ".part"), file_(std::fopen(part_.c_str(), "wb")) {
    if (!file_) throw UsageError(path_ + ": cannot write");
  }
  ~OutFile() {
    if (!file_) return;
    std::fclose(file_);
    std::remove(part_.c_str());
  }
  OutFile(const OutFile&) = delete;
  OutFile& operator=(const OutFile&) = delete;
  void write(const void* bytes, std::size_t count) {
    if (std::fwrite(bytes, 1, count, file_) != count) throw DeviceError(path_ + ": cannot write");
  }
  void finish() {
    const bool closed = std::fclose(std::exchange(file_, nullptr)) == 0;
    if (!closed) throw DeviceError(path_ + ": cannot write");
    std::filesystem::rename(part_, path_);
  }

 private:
  std::string path_, part_;
  std::FILE* file_;
};

// Rows of a column in exchange for others of it: equal ones for equal ones, drawn at random.
void renumber_column(std::vector<std::uint32_t>& rows, std::size_t column, std::size_t columns, std::uint64_t first,
                     std::uint64_t size, Secret& secret) {
  std::vector<std::uint32_t> found;
  for (std::size_t i = column; i < rows.size(); i += columns) found.push_back(rows[i]);
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  std::vector<std::uint64_t> taken((size + 63) / 64, 0);
  std::vector<std::uint32_t> instead;
  // Beyond half of the column the rest is shuffled; drawing would miss too often.
  if (found.size() * 2 > size) {
    instead.resize(size);
    std::iota(instead.begin(), instead.end(), static_cast<std::uint32_t>(first));
    secret.shuffle(instead);
  }
  while (instead.size() < found.size()) {
    const std::uint64_t row = secret.below(size);
    if ((taken[row / 64] >> (row % 64)) & 1) continue;
    taken[row / 64] |= std::uint64_t{1} << (row % 64);
    instead.push_back(static_cast<std::uint32_t>(first + row));
  }
  for (std::size_t i = column; i < rows.size(); i += columns)
    rows[i] = instead[static_cast<std::size_t>(std::lower_bound(found.begin(), found.end(), rows[i]) - found.begin())];
}

class Reader {
 public:
  Reader(const AnonymiseOptions& options, const TableSpec& spec, const TokenMap& map)
      : options_(options), spec_(spec), map_(map) {}
  // Calls session(the session), then for each of its turns turn(the turn, its contexts).
  template <class OnSession, class OnTurn>
  void each(OnSession&& on_session, OnTurn&& on_turn) {
    SessionOptions reading;
    reading.raw_vocabulary = spec_.raw_vocabulary;
    const auto source = open_sessions(options_.traces, reading);
    const auto order = static_cast<std::size_t>(spec_.max_ngram);
    Session session;
    while (source->next(session)) {
      if (options_.watch) options_.watch();
      ids_.clear();
      for (const Turn& turn : session.turns)
        for (const std::uint32_t id : turn.ids) ids_.push_back(map_(id));
      context_.resize(ids_.size() * order);
      gather_context(spec_, ids_, 0, ids_.size(), context_.data());
      on_session(session);
      std::size_t at = 0;
      for (const Turn& turn : session.turns) {
        on_turn(turn, std::span<const std::uint32_t>(context_).subspan(at * order, turn.ids.size() * order));
        at += turn.ids.size();
      }
    }
  }

 private:
  const AnonymiseOptions& options_;
  const TableSpec& spec_;
  const TokenMap& map_;
  std::vector<std::uint32_t> ids_, context_;
};

TokenMap token_map_of(const AnonymiseOptions& options, const TableSpec& spec) {
  if (options.token_map.empty() && spec.vocabulary != spec.raw_vocabulary)
    throw UsageError(fmt::format("table {} compresses its vocabulary: give its token map with --token-map", spec.name));
  return options.token_map.empty() ? TokenMap() : TokenMap::load(options.token_map, spec);
}

}  // namespace

void check_anonymised_table(const AnonymiseOptions& options) { token_map_of(options, load_table_spec(options.table)); }

Anonymised anonymise_sessions(const AnonymiseOptions& options) {
  const TableSpec spec = load_table_spec(options.table);
  const TokenMap map = token_map_of(options, spec);
  const auto hash = make_hash(spec);
  const auto order = static_cast<std::size_t>(spec.max_ngram);
  Reader reader(options, spec, map);
  Contexts contexts(order);
  Anonymised done;
  reader.each([&](const Session&) { ++done.sessions; },
              [&](const Turn& turn, std::span<const std::uint32_t> context) {
                done.tokens += turn.ids.size();
                for (std::size_t t = 0; t < turn.ids.size(); ++t) contexts.number(context.data() + t * order);
              });
  done.contexts = contexts.count();
  if (done.contexts > INT32_MAX) throw UsageError("more than 2^31 contexts: anonymise fewer sessions at once");

  Secret secret;
  std::vector<std::uint32_t> number(contexts.count());
  std::iota(number.begin(), number.end(), 0u);
  secret.shuffle(number);

  // Rows, layer by layer.
  done.rows_file = options.out + ".rows";
  done.table_file = options.out + ".table.json";
  OutFile rows_out(done.rows_file);
  const std::size_t columns = spec.rows_per_token();
  std::vector<std::uint32_t> rows(contexts.count() * columns), placed(rows.size());
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> digest(XXH3_createState(), &XXH3_freeState);
  XXH3_64bits_reset(digest.get());
  Json layers = Json::array(), head_rows = Json::array();
  for (std::size_t l = 0; l < spec.layers.size(); ++l) {
    if (options.watch) options.watch();
    const LayerTable& table = spec.layers[l];
    hash->rows(l, contexts.tokens().data(), contexts.count(), rows.data());
    for (std::size_t c = 0; c < columns; ++c) {
      const std::uint64_t size = table.head_offset[c + 1] - table.head_offset[c];
      renumber_column(rows, c, columns, table.head_offset[c], size, secret);
      head_rows.push_back(size);
    }
    for (std::size_t i = 0; i < contexts.count(); ++i)
      std::copy_n(&rows[i * columns], columns, &placed[std::size_t{number[i]} * columns]);
    rows_out.write(placed.data(), placed.size() * sizeof(std::uint32_t));
    XXH3_64bits_update(digest.get(), placed.data(), placed.size() * sizeof(std::uint32_t));
    layers.push_back(table.layer);
  }

  OutFile sessions_out(options.out);
  std::unordered_map<std::string, std::size_t> group_of;
  std::string line;
  std::uint64_t session_number = 0;
  bool first_turn = true;
  const auto end_session = [&] {
    if (session_number == 0) return;
    line += "]}\n";
    sessions_out.write(line.data(), line.size());
  };
  reader.each(
      [&](const Session& session) {
        end_session();
        const std::size_t group = group_of.emplace(session.group, group_of.size() + 1).first->second;
        line = fmt::format(R"({{"id": "{}", "group": "{}", "turns": [)", ++session_number, group);
        first_turn = true;
      },
      [&](const Turn& turn, std::span<const std::uint32_t> context) {
        line +=
            fmt::format(R"({}{{"role": "{}", "ids": [)", std::exchange(first_turn, false) ? "" : ", ", to_string(turn.role));
        for (std::size_t t = 0; t < turn.ids.size(); ++t)
          fmt::format_to(std::back_inserter(line), "{}{}", t ? "," : "",
                         number[contexts.number(context.data() + t * order)]);
        line += "]}";
      });
  end_session();

  const Json described = {{"name", spec.name + "-recorded"},
                          {"hash", "recorded"},
                          {"record", spec.format == RecordFormat::bf16 ? "bf16" : "fp8_e4m3_block32"},
                          {"row_values", spec.row_values},
                          {"vocab_size", done.contexts},
                          {"layers", layers},
                          {"orders", spec.order},
                          {"head_rows", head_rows},
                          {"rows_file", std::filesystem::path(done.rows_file).filename().string()},
                          {"rows_xxh3", fmt::format("{:016x}", XXH3_64bits_digest(digest.get()))}};
  rows_out.finish();
  write_text_file(done.table_file, described.dump(2) + "\n");
  sessions_out.finish();
  return done;
}

}  // namespace slacktier

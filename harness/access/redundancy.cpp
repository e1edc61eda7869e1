// What the heads of an n-gram order have in common. They answer for the same n-gram, so that whatever one says that another
// has said need not be read. Looked at are the rows of a checkpoint for the contexts of the sessions.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <unordered_set>

#include "harness/access/questions.hpp"
#include "platforms/error.hpp"
#include "tier/hash.hpp"
#include "tier/numerics.hpp"
#include "tier/rows.hpp"

namespace slacktier {
namespace {

constexpr std::size_t most_contexts =
    1500;  // the time is their number, times the square of a row's values, times the pairs of heads

float value_of(const TableSpec& spec, const std::byte* record, std::size_t i) {
  std::uint32_t bits = 0;
  if (spec.format == RecordFormat::bf16) {
    std::uint16_t half = 0;
    std::memcpy(&half, record + 2 * i, sizeof half);
    bits = std::uint32_t{half} << 16;
  } else {
    bits = dequantise_fp32(std::to_integer<std::uint8_t>(record[i]),
                           std::to_integer<std::uint8_t>(record[spec.row_values + i / 32]));
  }
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return std::isfinite(value) ? value : 0;
}

// [contexts][values] of one head.
struct HeadRows {
  std::vector<float> values;
  std::size_t zeros = 0;  // rows without a value
};

// Sum over contexts of the products of two heads' centred values, squared and summed: |X'Y|^2. `shift`: y's contexts are
// others'.
double alignment(const std::vector<float>& x, const std::vector<float>& y, std::size_t contexts, std::size_t n,
                 std::size_t shift) {
  std::vector<float> product(n * n, 0.0f);
  for (std::size_t c = 0; c < contexts; ++c) {
    const float* a = &x[c * n];
    const float* b = &y[(c + shift) % contexts * n];
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) product[i * n + j] += a[i] * b[j];
  }
  double sum = 0;
  for (const float p : product) sum += static_cast<double>(p) * p;
  return sum;
}

std::vector<float> centred(std::vector<float> values, std::size_t contexts, std::size_t n) {
  std::vector<double> mean(n, 0.0);
  for (std::size_t i = 0; i < values.size(); ++i) mean[i % n] += values[i];
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] -= static_cast<float>(mean[i % n] / static_cast<double>(contexts));
  return values;
}

// Contexts of decoded tokens, evenly taken from all, each once.
std::vector<std::uint32_t> contexts_of(const Corpus& corpus, const TableSpec& spec) {
  const auto order = static_cast<std::size_t>(spec.max_ngram);
  std::vector<std::uint32_t> chosen, context(order);
  std::unordered_set<std::string> seen;
  const std::size_t stride = std::max<std::size_t>(1, corpus.ids.size() / (2 * most_contexts));
  for (const CorpusSession& session : corpus.sessions) {
    const auto ids = std::span(corpus.ids).subspan(session.first, session.tokens);
    for (std::size_t t = session.first % stride; t < session.tokens && chosen.size() < most_contexts * order; t += stride) {
      if (!corpus.decode[session.first + t]) continue;
      gather_context(spec, ids, t, 1, context.data());
      if (seen.emplace(reinterpret_cast<const char*>(context.data()), order * sizeof(std::uint32_t)).second)
        chosen.insert(chosen.end(), context.begin(), context.end());
    }
  }
  return chosen;
}

}  // namespace

Table answer_redundancy(const Corpus& corpus, const AccessOptions& options) {
  if (options.rows.empty()) throw UsageError("question redundancy: give the table's safetensors with --rows");
  const TableSpec spec = load_table_spec(options.table);
  const std::size_t layer = options.layer < 0 ? spec.layers.size() - 1 : spec.layer_index(options.layer);
  const auto checkpoint = checkpoint_table(spec, options.rows);
  const Shard whole = make_shard(spec, layer, ShardMap::contiguous, 1, 0);
  const auto origin = checkpoint->origin(layer, whole);
  const std::vector<std::uint32_t> context = contexts_of(corpus, spec);
  const std::size_t contexts = context.size() / static_cast<std::size_t>(spec.max_ngram), columns = spec.rows_per_token();
  if (contexts < 2) throw UsageError("question redundancy: the sessions have fewer than two different decoded contexts");
  std::vector<std::uint32_t> rows(contexts * columns);
  make_hash(spec)->rows(layer, context.data(), contexts, rows.data());

  Table table;
  table.title = "What heads of one n-gram order have in common";
  table.columns = {column("order", ""),
                   column("heads", ""),
                   column("rows without a value", "%"),
                   column("mean |cosine|", ""),
                   column("linear alignment", ""),
                   column("by chance", ""),
                   column("independent heads", "")};
  const std::size_t n = spec.row_values;
  std::vector<std::byte> record(spec.row_bytes);
  for (std::size_t o = 0; o < corpus.orders.size(); ++o) {
    std::vector<HeadRows> heads;
    for (std::size_t c = 0; c < columns; ++c) {
      if (spec.order[c] != corpus.orders[o]) continue;
      HeadRows head;
      head.values.resize(contexts * n);
      for (std::size_t k = 0; k < contexts; ++k) {
        if (options.watch && k % 256 == 0) options.watch();
        origin->row(rows[k * columns + c] - whole.first[c] + whole.local[c], record.data());
        bool zero = true;
        for (std::size_t i = 0; i < n; ++i) {
          head.values[k * n + i] = value_of(spec, record.data(), i);
          zero = zero && head.values[k * n + i] == 0;
        }
        head.zeros += zero;
      }
      heads.push_back(std::move(head));
    }
    const std::size_t h = heads.size();
    std::size_t zeros = 0;
    for (const HeadRows& head : heads) zeros += head.zeros;
    // Cosines context by context: their mean, and how many independent directions the heads span.
    double cosines = 0, independent = 0;
    for (std::size_t k = 0; k < contexts; ++k) {
      double squares = 0;
      for (std::size_t a = 0; a < h; ++a)
        for (std::size_t b = 0; b < h; ++b) {
          double product = 0, of_a = 0, of_b = 0;
          for (std::size_t i = 0; i < n; ++i) {
            const double x = heads[a].values[k * n + i], y = heads[b].values[k * n + i];
            product += x * y;
            of_a += x * x;
            of_b += y * y;
          }
          const double cosine = of_a > 0 && of_b > 0 ? product / std::sqrt(of_a * of_b) : a == b ? 1 : 0;
          squares += cosine * cosine;
          if (a < b) cosines += std::abs(cosine);
        }
      independent += static_cast<double>(h * h) / squares;
    }
    // Alignment: linear CKA (Kornblith and others, ICML 2019), of pairs of neighbouring heads.
    double aligned = 0, chance = 0;
    std::size_t pairs = 0;
    for (std::size_t a = 0; a + 1 < h; ++a) {
      if (options.watch) options.watch();
      const auto x = centred(heads[a].values, contexts, n), y = centred(heads[a + 1].values, contexts, n);
      const double scale = std::sqrt(alignment(x, x, contexts, n, 0) * alignment(y, y, contexts, n, 0));
      if (scale == 0) continue;
      aligned += alignment(x, y, contexts, n, 0) / scale;
      chance += alignment(x, y, contexts, n, contexts / 2) / scale;
      ++pairs;
    }
    const auto of_pairs = [&](double sum) { return pairs > 0 ? Cell::number(sum / static_cast<double>(pairs), 3) : Cell(); };
    const double cosine_pairs = static_cast<double>(contexts * h * (h - 1)) / 2;
    table.rows.push_back({Cell::count(corpus.orders[o]), Cell::count(static_cast<std::int64_t>(h)),
                          Cell::number(percent(zeros, contexts * h), 1),
                          h > 1 ? Cell::number(cosines / cosine_pairs, 3) : Cell(), of_pairs(aligned), of_pairs(chance),
                          Cell::number(independent / static_cast<double>(contexts), 2)});
  }
  table.footnotes = {fmt::format("{} contexts of decoded tokens, {}", contexts, checkpoint->describe()),
                     "linear alignment (CKA) is 1 where one head's rows are the other's, turned and scaled; by chance: of "
                     "other contexts' rows. Heads "
                     "that are no more alike than by chance leave nothing to save"};
  return table;
}

}  // namespace slacktier

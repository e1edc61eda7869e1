#include "iobench/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "iobench/load_text.hpp"
#include "reports/error.hpp"
#include "reports/sample_files.hpp"

namespace slacktier {
namespace {

constexpr std::size_t blocks = 10;

std::string load_key(const ReadResult& result, const ReadPoint& point) {
  return fmt::format("{}, {}, {}, pages {}", load_text(result), result.pacing, result.verify, pages_text(point));
}

// T of one layer in run order, in ten blocks; empty when there are no raw samples to read.
std::vector<std::vector<double>> block_samples(const Envelope& envelope, const ReadPoint& point, std::size_t layer) {
  if (!point.samples) return {};
  const std::optional<NpyArray> found = samples_of(envelope.file, *point.samples);
  if (!found) return {};
  const NpyArray& array = *found;
  if (array.shape.size() != 2 || array.shape[1] != point.t_us.size())
    throw InputError(fmt::format("{}: wants one column a layer", point.samples->file));
  const std::size_t batches = array.shape[0], layers = array.shape[1];
  if (batches < 2 * blocks) return {};
  const std::vector<double> values = array.as_double();
  std::vector<std::vector<double>> result(blocks);
  for (std::size_t b = 0; b < batches; ++b) result[b * blocks / batches].push_back(values[b * layers + layer]);
  return result;
}

}  // namespace

const char* to_string(Change change) {
  switch (change) {
    case Change::same:
      return "same";
    case Change::faster:
      return "faster";
    case Change::slower:
      return "slower";
    case Change::unclear:
      break;
  }
  return "unclear";
}

std::vector<PointChange> compare_reads(const Envelope& before, const Envelope& after, double tolerance_pct) {
  std::vector<PointChange> changes;
  const auto old_results = read_results(before), new_results = read_results(after);
  for (const ReadResult& old_result : old_results)
    for (const ReadPoint& old_point : old_result.points)
      for (const ReadResult& new_result : new_results)
        for (const ReadPoint& new_point : new_result.points) {
          const std::string key = load_key(old_result, old_point);
          if (load_key(new_result, new_point) != key) continue;
          std::size_t layer = 0;
          for (const auto& [k, t] : old_point.t_us) {
            const std::size_t column = layer++;
            const auto found = new_point.t_us.find(k);
            if (found == new_point.t_us.end() || !t.mean || !found->second.mean) continue;
            PointChange change;
            change.load = key;
            change.k = k;
            change.before_ms = *t.mean / 1e3;
            change.after_ms = *found->second.mean / 1e3;
            const auto old_blocks = block_samples(before, old_point, column);
            const auto new_blocks = block_samples(after, new_point, column);
            if (old_blocks.empty() || new_blocks.empty()) {
              change.reason = "no raw samples of at least 20 batches on both sides";
            } else {
              const Interval pct = compare_blocks(new_blocks, old_blocks).mean_pct;
              change.mean_pct = pct;
              if (pct.lo >= -tolerance_pct && pct.hi <= tolerance_pct)
                change.change = Change::same;
              else if (pct.hi < 0)
                change.change = Change::faster;
              else if (pct.lo > 0)
                change.change = Change::slower;
              else
                change.reason = fmt::format("the interval is wider than ±{}% and covers 0", tolerance_pct);
            }
            changes.push_back(std::move(change));
          }
        }
  if (changes.empty())
    throw InputError(
        fmt::format("{} and {} have no load in common: source, threads, ranks, disks, order and pages must agree",
                    before.file, after.file));
  return changes;
}

}  // namespace slacktier

#include "harness/exposure_reads.hpp"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "reports/by_layer.hpp"
#include "reports/error.hpp"
#include "reports/reads_file.hpp"
#include "reports/sample_files.hpp"

namespace slacktier {
namespace {

std::string name_of(const ReadResult& result) {
  return fmt::format("{}, {} thread(s), {} rank(s) on {} disk(s){}", result.source, result.threads, result.ranks_on_disk,
                     result.disks, result.tenants > 1 ? fmt::format(", {} tenants", result.tenants) : "");
}

std::vector<std::vector<double>> steps_of(const std::string& file, const SampleFile& samples, std::size_t layers) {
  const std::optional<NpyArray> array = samples_of(file, samples);
  if (!array) return {};
  if (array->shape.size() != 2 || array->shape[1] != layers)
    throw InputError(fmt::format("{}: {}: has no column for each of {} layers", file, samples.file, layers));
  const std::vector<double> values = array->as_double();
  std::vector<std::vector<double>> steps(array->shape[0]);
  for (std::size_t i = 0; i < steps.size(); ++i)
    for (std::size_t l = 0; l < layers; ++l) steps[i].push_back(values[i * layers + l] / 1e3);
  return steps;
}

ReadTimes at_pages(const ReadResult& result, const std::map<int, std::int64_t>& pages, const std::string& file) {
  ReadTimes times;
  times.name = name_of(result);
  times.pages = pages;
  for (const auto& [k, count] : pages) {
    const ReadFit* fit = nullptr;
    for (const ReadFit& one : result.fit)
      if (one.k == k) fit = &one;
    if (count > 0 && !fit)
      throw InputError(
          fmt::format("{}: {}: has no fit of layer {}; measure with slacktier-iobench sweep", file, times.name, k));
    times.t_ms[k] = count > 0 ? fit->at(pages) / 1e3 : 0;
    if (count > 0 && fit->extrapolates(pages)) times.name += fmt::format(" (layer {} beyond what was measured)", k);
  }
  return times;
}

}  // namespace

std::vector<ReadTimes> read_times(const std::string& reads, const std::string& pages) {
  if (!reads.ends_with(".json")) {
    if (!pages.empty()) throw InputError("--pages: needs a reads file, whose fit gives the read time of so many pages");
    ReadTimes times;
    times.name = "given";
    times.t_ms = parse_by_layer("--reads", reads, "read time in ms (a file's name ends in .json)");
    return {times};
  }
  const Envelope envelope = read_envelope(reads, "reads");
  std::map<int, std::int64_t> wanted;
  if (!pages.empty())
    for (const auto& [k, count] : parse_by_layer("--pages", pages, "number of pages"))
      wanted[k] = static_cast<std::int64_t>(std::llround(count));
  std::vector<ReadTimes> all;
  for (const ReadResult& result : read_results(envelope)) {
    if (!wanted.empty()) {
      all.push_back(at_pages(result, wanted, reads));
      continue;
    }
    for (const ReadPoint& point : result.points) {
      ReadTimes times;
      times.name = name_of(result);
      times.pages = point.pages_per_rank;
      for (const auto& [k, t] : point.t_us) times.t_ms[k] = t.mean.value_or(0) / 1e3;
      if (times.t_ms.empty()) continue;
      if (point.samples) times.steps_ms = steps_of(reads, *point.samples, times.t_ms.size());
      all.push_back(std::move(times));
    }
  }
  if (all.empty()) throw InputError(fmt::format("{}: holds no measured point", reads));
  return all;
}

}  // namespace slacktier

#include "harness/service_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <tuple>

#include "platforms/error.hpp"
#include "reports/averages.hpp"
#include "reports/error.hpp"
#include "reports/reads_file.hpp"

namespace slacktier {
namespace {

// sigma of a log-normal whose p99 lies so far above its p50; the median over the points, since few samples make a poor p99.
double spread(const ReadResult& result, int k) {
  std::vector<double> sigmas;
  for (const ReadPoint& point : result.points) {
    const auto t = point.t_us.find(k);
    if (t == point.t_us.end() || !t->second.p99 || !t->second.p50 || *t->second.p50 <= 0) continue;
    sigmas.push_back(std::log(std::max(1.0, *t->second.p99 / *t->second.p50)) / 2.3263478740408408);
  }
  return sigmas.empty() ? 0 : median(sigmas);
}

bool reads_disks(const std::string& source) { return source != "rdma" && source != "tcp"; }

}  // namespace

void ServiceModels::add(const std::string& source, std::uint32_t disks, int threads, const ServiceModel& model) {
  entries_.push_back({source, disks, threads, model});
}

const ServiceModels::Entry* ServiceModels::nearest(const LayerPlacement& layer) const {
  const Entry* best = nullptr;
  const auto distance = [&](const Entry& e) {
    return std::tuple(e.source != layer.source, std::abs(static_cast<int>(e.disks) - static_cast<int>(layer.disks)),
                      std::abs(e.threads - layer.threads));
  };
  for (const Entry& entry : entries_) {
    if (reads_disks(entry.source) != reads_disks(layer.source)) continue;
    if (!best || distance(entry) < distance(*best)) best = &entry;
  }
  return best;
}

const ServiceModel& ServiceModels::find(const LayerPlacement& layer) const {
  const Entry* entry = nearest(layer);
  if (!entry)
    throw UsageError(
        fmt::format("source {}: {} has no read times of it: measure them with slacktier-iobench sweep --source {}",
                    layer.source, label_.empty() ? "the virtual clock" : label_, layer.source));
  return entry->model;
}

bool ServiceModels::measured(const LayerPlacement& layer) const {
  const Entry* entry = nearest(layer);
  return entry && entry->source == layer.source && entry->disks == layer.disks && entry->threads == layer.threads;
}

ServiceModels service_from_reads(const Envelope& reads) {
  ServiceModels models;
  const std::string file = reads.file.empty() ? "reads file" : reads.file;
  models.set_label(file);
  bool any = false;
  for (const ReadResult& result : read_results(reads)) {
    if (result.fit.empty()) continue;
    const ReadFit& fit = *std::min_element(result.fit.begin(), result.fit.end(),
                                           [](const ReadFit& a, const ReadFit& b) { return a.k < b.k; });
    const auto own = fit.b_us.find(fit.k);
    if (own == fit.b_us.end() || own->second <= 0) continue;
    ServiceModel model;
    // A fit may begin a little below zero where nothing was measured with few pages.
    model.latency_us = std::max(0.0, fit.a_us);
    // Slopes count the pages of one rank; the device served those of all ranks that read at once, spread over its disks.
    model.page_us = own->second * static_cast<double>(result.disks) / static_cast<double>(result.ranks_on_disk);
    for (const auto& [k, b] : fit.b_us)
      if (k != fit.k && b > 0) model.later_share = std::min(1.0, std::max(model.later_share, b / own->second));
    model.interleaved_share = model.later_share;
    model.jitter = spread(result, fit.k);
    models.add(result.source, static_cast<std::uint32_t>(result.disks), static_cast<int>(result.threads), model);
    any = true;
  }
  if (!any)
    throw InputError(fmt::format(
        "{}: results: no fit of read times over pages: slacktier-iobench sweep measures enough loads for one", file));
  return models;
}

}  // namespace slacktier

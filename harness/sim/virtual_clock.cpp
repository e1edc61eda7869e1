#include "harness/virtual_clock.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "platforms/error.hpp"
#include "tier/known_links.hpp"
#include "tier/resident_table.hpp"
#include "tier/source.hpp"

namespace slacktier {
namespace {

constexpr std::uint32_t most_disks = 8;

// A factor of mean 1.
double log_normal(double sigma, double normal) { return std::exp(sigma * normal - sigma * sigma / 2); }

double us(Nanos t) { return static_cast<double>(t) / 1e3; }

}  // namespace

VirtualClock::VirtualClock(const TableSpec& spec, const StepModel& model, const Placement& placement, std::uint32_t ranks,
                           const ServiceModels& services, const CostModel& costs)
    : model_(model),
      costs_(costs),
      ranks_(ranks),
      first_layer_first_(placement.first_layer_first),
      baseline_(placement.all_dram()) {
  for (const LayerTable& table : spec.layers) {
    const LayerPlacement& wanted = placement.layers.at(table.layer);
    Layer layer;
    layer.depth = table.layer;
    layer.on_demand = wanted.on_demand;
    if (!is_resident_source(wanted.source)) {
      layer.device = &device_for(wanted, placement, 4096, services);
      layer.disks = layer.device->disks;
      layer.jitter = layer.device->service.jitter;
    }
    layers_.push_back(layer);
  }
  pending_.resize(layers_.size() * ranks_);
  published_.resize(layers_.size() * ranks_);
  worker_.resize(ranks_);
  times_.ranks.resize(layers_.size() * ranks_);
}

VirtualClock::Device& VirtualClock::device_for(const LayerPlacement& wanted, const Placement& placement,
                                               std::uint32_t page_bytes, const ServiceModels& services) {
  for (auto& device : devices_)
    if (device->source == wanted.source && device->wrappers == wanted.wrappers && device->disks == wanted.disks &&
        device->threads == wanted.threads)
      return *device;
  if (wanted.disks > most_disks)
    throw UsageError(
        fmt::format("{}: {} disks; the virtual clock takes up to {}", placement.name, wanted.disks, most_disks));
  auto device = std::make_unique<Device>();
  device->source = wanted.source;
  device->wrappers = wanted.wrappers;
  device->disks = wanted.disks;
  device->threads = wanted.threads;
  device->service = services.find(wanted);
  read_wrappers(*device, page_bytes);
  const double share = placement.first_layer_first ? device->service.later_share : device->service.interleaved_share;
  const std::uint32_t own = device->service.own_device ? ranks_ : 1;
  device->queues.assign(std::size_t{own} * device->disks, VirtualDisk(device->service.page_us, share));
  device->host_free.resize(ranks_);
  device->link_free.resize(ranks_);
  devices_.push_back(std::move(device));
  return *devices_.back();
}

// "shared:tenants=2" and "delayed:latency_us=15,gb_per_s=12.5" as the live wrappers mean them.
void VirtualClock::read_wrappers(Device& device, std::uint32_t page_bytes) {
  for (const std::string& text : device.wrappers) {
    check_wrapper(text);
    const auto number = [&](const char* key) {
      const std::size_t at = text.find(std::string(key) + "=");
      return at == std::string::npos ? 0.0 : std::stod(text.substr(at + std::char_traits<char>::length(key) + 1));
    };
    const std::string name = text.substr(0, text.find(':'));
    if (name == "shared") {
      device.tenants *= std::max(1u, static_cast<std::uint32_t>(number("tenants")));
    } else if (name == "delayed") {
      const std::size_t named = text.find("link=");
      const auto known = named == std::string::npos ? std::nullopt : known_link(text.substr(named + 5));
      device.link_latency_us += known ? known->latency_us : number("latency_us");
      if (const double gb = known ? known->gb_per_s : number("gb_per_s"); gb > 0)
        device.link_page_us += page_bytes / gb / 1e3;
    } else {
      throw UsageError(
          fmt::format("wrapper {}: moves or damages bytes, which the virtual clock does not: use --device cpu", name));
    }
  }
}

void VirtualClock::submit(std::size_t layer, std::uint32_t rank, const RankStep& in, double at) {
  Device& device = *layers_[layer].device;
  Pending& pending = pending_[layer * ranks_ + rank];
  pending = {};
  pending.at = at;
  pending.pages = in.pages;
  double& host = device.host_free[rank];
  host = std::max(host, at) + device.service.host_us_per_page * (in.pages + in.cached_pages);
  pending.host = host;
  double& link = device.link_free[rank];
  if (device.link_latency_us > 0 || device.link_page_us > 0) {
    link = std::max(link, at + device.link_latency_us) + device.link_page_us * in.pages;
    pending.link = link;
  }
  const std::size_t first = device.service.own_device ? std::size_t{rank} * device.disks : 0;
  for (std::uint32_t d = 0; d < device.disks; ++d) {
    const double pages = in.on_disk ? in.on_disk[d] : static_cast<double>(in.pages) / device.disks;
    VirtualDisk& disk = device.queues[first + d];
    // Other tenants read as much at the same time, each in queues of its own.
    for (std::uint32_t tenant = 1; tenant < device.tenants; ++tenant) disk.submit(tenant * ranks_ + rank, at, pages);
    pending.batch[d] = disk.submit(rank, at, pages);
  }
}

double VirtualClock::arrival(std::size_t layer, std::uint32_t rank) {
  Device& device = *layers_[layer].device;
  const Pending& pending = pending_[layer * ranks_ + rank];
  const std::size_t first = device.service.own_device ? std::size_t{rank} * device.disks : 0;
  double done = pending.host;
  for (std::uint32_t d = 0; d < device.disks; ++d) done = std::max(done, device.queues[first + d].done(pending.batch[d]));
  if (pending.pages > 0) done += device.service.latency_us;
  return std::max(done, pending.link);  // the link carries while the device reads
}

const StepTimes& VirtualClock::step(const std::vector<RankStep>& in, const StepDraw& draw) {
  const std::size_t n_layers = layers_.size();
  for (auto& device : devices_) {
    for (VirtualDisk& disk : device->queues) disk.reset();
    std::fill(device->host_free.begin(), device->host_free.end(), 0.0);
    std::fill(device->link_free.begin(), device->link_free.end(), 0.0);
  }
  // The worker of each rank: layer by layer, as Tier::plan_step does. Submissions are made in the order of time, so that a
  // device's queues fill as they would.
  const auto reads = [&](std::size_t i) { return layers_[i / ranks_].device && in[i].pages + in[i].cached_pages > 0; };
  std::fill(worker_.begin(), worker_.end(), costs_.indices_us);
  for (std::size_t l = 0; l < n_layers; ++l)
    for (std::uint32_t r = 0; r < ranks_; ++r) {
      const std::size_t i = l * ranks_ + r;
      RankTimes& out = times_.ranks[i];
      out = {};
      // A resident layer has no directory to pass, only descriptors to write.
      out.resolve_us = layers_[l].device
                           ? costs_.resolve_us + costs_.lookup_us * in[i].lookups + costs_.miss_us * in[i].misses
                           : 0.5 * costs_.lookup_us * in[i].lookups;
      worker_[r] += out.resolve_us;
      published_[i] = worker_[r];
      if (reads(i) && !layers_[l].on_demand && first_layer_first_) submit(l, r, in[i], out.submitted_us = worker_[r]);
    }
  if (!first_layer_first_)
    for (std::size_t l = 0; l < n_layers; ++l)
      for (std::uint32_t r = 0; r < ranks_; ++r)
        if (const std::size_t i = l * ranks_ + r; reads(i) && !layers_[l].on_demand)
          submit(l, r, in[i], times_.ranks[i].submitted_us = worker_[r]);

  const double release = costs_.release_us * log_normal(costs_.release_jitter, draw.release_normal);
  double now = us(model_.lead_time) * draw.compute;
  std::size_t depth = 0;
  const auto compute_to = [&](std::size_t layer) {
    for (; depth < layer; ++depth) now += us(model_.layer_time[depth]) * draw.compute;
  };
  for (std::size_t l = 0; l < n_layers; ++l) {
    compute_to(static_cast<std::size_t>(layers_[l].depth));
    if (layers_[l].on_demand)
      for (std::uint32_t r = 0; r < ranks_; ++r)
        if (const std::size_t i = l * ranks_ + r; reads(i))
          submit(l, r, in[i], times_.ranks[i].submitted_us = std::max(now, published_[i]));
    double open = now;
    for (std::uint32_t r = 0; r < ranks_; ++r) {
      const std::size_t i = l * ranks_ + r;
      RankTimes& out = times_.ranks[i];
      if (reads(i)) {
        const double took = arrival(l, r) - out.submitted_us;
        out.arrived_us = out.submitted_us + took * log_normal(layers_[l].jitter, draw.read_normal);
        published_[i] = out.arrived_us;
      }
      out.opened_us = published_[i] > now ? published_[i] + release : now;
      out.stall_us = out.opened_us - now;
      open = std::max(open, out.opened_us);
    }
    now = open;
  }
  compute_to(model_.layer_time.size());
  times_.step_us = now + (baseline_ ? 0 : costs_.extra_us);
  return times_;
}

}  // namespace slacktier

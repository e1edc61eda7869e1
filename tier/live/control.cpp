// What changes between two steps of a running tier.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "platforms/error.hpp"
#include "tier/live/parts.hpp"

namespace slacktier {
namespace {

[[noreturn]] void refuse(const std::string& place, const std::string& problem) {
  throw UsageError(fmt::format("{}: {}", place, problem));
}

std::string describe(const std::string& source, const std::vector<std::string>& wrappers, std::size_t disks, int threads) {
  std::string text = fmt::format("{} over {} disk(s) with {} thread(s)", source, disks, threads);
  for (const std::string& wrapper : wrappers) text += " in " + wrapper;
  return text;
}

}  // namespace

void Tier::look_at_control() {
  const ControlFile::News news = control_file_->look();
  if (news == ControlFile::News::none) return;
  const std::string& path = control_file_->path();
  std::string problem;
  if (news == ControlFile::News::gone) problem = path + ": is gone";
  if (news == ControlFile::News::unreadable) problem = path + ": cannot be read, or is larger than 1 MiB";
  if (news == ControlFile::News::changed) {
    try {
      apply(parse_control(control_file_->text(), path, spec_));
      ++control_generation_;
    } catch (const UsageError& error) {
      problem = error.what();
      if (!problem.starts_with(path)) problem = path + ": results." + problem;
    }
  }
  control_news_.push_back({epoch_ + 1, control_generation_, problem});
}

// The open source that a layer's control asks for; what it leaves out is as now.
Tier::OpenSource& Tier::source_for(const Layer& layer, const LayerControl& wanted, const std::string& place) {
  const std::string name = wanted.source.value_or(layer.setup.source);
  const std::size_t disks = wanted.disks.value_or(static_cast<std::uint32_t>(layer.setup.disks.size()));
  const int threads = wanted.threads.value_or(layer.setup.threads);
  const std::vector<std::string> wrappers = wanted.wrappers.value_or(layer.setup.wrappers);
  const auto fits = [&](const LayerSetup& has) {
    return has.source == name && has.wrappers == wrappers && has.disks.size() == disks && has.threads == threads &&
           (!wanted.remote || has.remote == *wanted.remote) &&
           has.drop_cache == wanted.drop_cache.value_or(has.drop_cache) && has.hints == wanted.hints.value_or(has.hints);
  };
  if (fits(layer.source->setup)) return *layer.source;
  std::vector<std::string> open;
  for (auto& source : sources_) {
    const LayerSetup& has = source->setup;
    if (fits(has)) {
      if (source->image.segment(spec_.layers[layer.index].layer, options_.rank).stored_pages !=
          options_.folds[layer.index].stored_pages)
        refuse(place, "that source's image holds another number of pages of this layer");
      return *source;
    }
    open.push_back(describe(has.source, has.wrappers, has.disks.size(), has.threads));
  }
  refuse(place, fmt::format("{} is not open; open are {}", describe(name, wrappers, disks, threads), fmt::join(open, ", ")));
}

void Tier::apply(const Control& control) {
  struct Change {
    Layer* layer = nullptr;
    OpenSource* source = nullptr;
    std::optional<std::uint64_t> rows;
    std::optional<LinkDelay> delay;
  };
  std::vector<Change> changes;
  if (control.hot_rows) refuse("cache.hot_rows", "is fixed when the tier is made: leave it out");
  if (control.skip_unseen) refuse("skip_unseen", "is fixed when the tier is made: leave it out");
  for (const auto& layer : layers_)
    if (control.policy && !layer->core->resident() && *control.policy != layer->setup.policy)
      refuse("cache.policy",
             fmt::format("is {} since the tier was made and cannot become {}", layer->setup.policy, *control.policy));
  for (const auto& [k, wanted] : control.layers) {
    const std::string place = fmt::format("layers.{}", k);
    Layer& layer = *layers_[spec_.layer_index(k)];
    const bool resident = layer.core->resident();
    if (wanted.source && (resident ? *wanted.source != layer.setup.source : is_resident_source(*wanted.source)))
      refuse(place + ".source",
             fmt::format("is {} since the tier was made and cannot become {}", layer.setup.source, *wanted.source));
    if (wanted.peer && *wanted.peer != layer.setup.peer)
      refuse(place + ".peer",
             fmt::format("is {} since the tier was made and cannot become {}", layer.setup.peer, *wanted.peer));
    if (!wanted.cache_rows.empty() && wanted.cache_rows.size() != 1 && wanted.cache_rows.size() != options_.ranks)
      refuse(place + ".cache_rows_per_rank",
             fmt::format("has {} entries, the table {} ranks", wanted.cache_rows.size(), options_.ranks));
    std::optional<std::uint64_t> rows;
    if (!wanted.cache_rows.empty()) rows = wanted.cache_rows[wanted.cache_rows.size() == 1 ? 0 : options_.rank];
    if (resident) {
      if (rows.value_or(0) > 0) refuse(place + ".cache_rows_per_rank", "the layer is resident and has no cache");
      continue;
    }
    const Directory& directory = *layer.core->directory();
    if (rows && std::min(*rows, directory.rows()) > directory.reserved())
      refuse(place + ".cache_rows_per_rank",
             fmt::format("{} rows are more than the {} reserved when the tier was made", *rows, directory.reserved()));
    if (wanted.cache_rows_reserved &&
        std::min(std::max(*wanted.cache_rows_reserved, rows.value_or(0)), directory.rows()) != directory.reserved())
      refuse(place + ".cache_rows_reserved_per_rank",
             fmt::format("is {} since the tier was made: leave it out", directory.reserved()));
    if (wanted.on_demand && *wanted.on_demand != (layer.setup.read == ReadMode::on_demand))
      refuse(place + ".read", "is fixed when the tier is made: leave it out");
    Change change{&layer, &source_for(layer, wanted, place), rows, wanted.delay};
    const bool delayed = std::any_of(change.source->setup.wrappers.begin(), change.source->setup.wrappers.end(),
                                     [](const std::string& wrapper) { return wrapper.starts_with("delayed:"); });
    if (wanted.delay && !delayed) refuse(place + ".delayed", "the layer's source has no wrapper 'delayed'");
    for (const Change& other : changes)
      if (other.source == change.source && other.delay && change.delay &&
          (other.delay->latency_us != change.delay->latency_us || other.delay->gb_per_s != change.delay->gb_per_s))
        refuse(place + ".delayed", fmt::format("layer {} reads from the same source: give both the same",
                                               spec_.layers[other.layer->index].layer));
    changes.push_back(change);
  }

  // All of it fits: nothing is refused from here on.
  for (const Change& change : changes) {
    Layer& layer = *change.layer;
    layer.source = change.source;
    layer.segment = &change.source->image.segment(spec_.layers[layer.index].layer, options_.rank);
    layer.setup.source = change.source->setup.source;
    layer.setup.disks = change.source->setup.disks;
    layer.setup.remote = change.source->setup.remote;
    layer.setup.threads = change.source->setup.threads;
    layer.setup.wrappers = change.source->setup.wrappers;
    layer.setup.drop_cache = change.source->setup.drop_cache;
    layer.setup.hints = change.source->setup.hints;
    if (change.delay) change.source->pages->set_delay(*change.delay);
    if (change.rows && std::min(*change.rows, layer.core->directory()->rows()) != layer.core->directory()->slots())
      resize_cache(layer.index, *change.rows);
  }
  options_.first_layer_first = control.first_layer_first.value_or(options_.first_layer_first);
  options_.row_dedup = control.row_dedup.value_or(options_.row_dedup);
  options_.page_dedup = control.page_dedup.value_or(options_.page_dedup);
  options_.watchdog = control.watchdog.value_or(options_.watchdog);
  for (auto& layer : layers_) {
    const std::lock_guard lock(layer->transitions);
    layer->set_dedup(options_.row_dedup, options_.page_dedup);
  }
}

}  // namespace slacktier

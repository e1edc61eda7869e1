// Building a live tier: memory, layers, sources.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "platforms/error.hpp"
#include "tier/live/parts.hpp"
#include "tier/remote_image.hpp"

namespace slacktier {

Tier::Tier(Device& device, const TableSpec& spec, TierOptions options)
    : device_(device), spec_(spec), options_(std::move(options)), hash_(make_hash(spec)) {
  const std::size_t columns = spec.rows_per_token();
  const std::size_t n_layers = spec.layers.size();
  if (options_.layers.size() != n_layers || options_.folds.size() != n_layers)
    throw UsageError(
        fmt::format("placement: {} layers given, table {} has {}", options_.layers.size(), spec.name, n_layers));
  if (!options_.rows) options_.rows = generated_table(spec, options_.seed);
  if (options_.max_tokens == 0) throw UsageError("placement: a step needs at least one token");
  device.load_module(tier_modules());
  const auto max_lookups = static_cast<std::uint32_t>(options_.max_tokens * columns);
  const auto order = static_cast<std::size_t>(spec.max_ngram);

  tokens_ = device.allocate_host(options_.max_tokens * (order * 4 + 1));
  context_ = static_cast<std::uint32_t*>(tokens_->host());
  active_ = reinterpret_cast<std::uint8_t*>(context_ + options_.max_tokens * order);
  no_rows_.resize(std::size_t{options_.max_tokens} * spec_.rows_per_token());
  no_tokens_.resize(options_.max_tokens);
  rows_device_ = device.allocate_device(n_layers * max_lookups * sizeof(std::uint32_t));
  rows_host_ = device.allocate_host(n_layers * max_lookups * sizeof(std::uint32_t));
  stamps_ = device.allocate_host((2 + 2 * n_layers) * sizeof(std::int64_t));
  signals_ = device.allocate_host(n_layers * sizeof(Signal) + sizeof(Post));
  post_ = new (static_cast<Signal*>(signals_->host()) + n_layers) Post;
  post_->bell = &doorbell_;
  if (options_.poll_indices < 0) options_.poll_indices = device.posts_ring() ? 0 : 2'000'000;
  side_ = device.create_stream("tier-side");
  prepare_hash();
  hashed_ = device.create_event();
  posted_ = device.create_event();

  // Buffers for two steps a layer: one given up by the watchdog must not starve the next.
  std::vector<std::uint32_t> buffers(n_layers, 0);
  std::uint64_t total = 0;
  for (std::size_t l = 0; l < n_layers; ++l) {
    const Shard shard = make_shard(spec, l, options_.shard_map, options_.ranks, options_.rank);
    std::uint32_t owned_columns = 0;
    for (std::size_t c = 0; c < columns; ++c) owned_columns += shard.first[c] < shard.last[c];
    if (!is_resident_source(options_.layers[l].source)) buffers[l] = 2 * options_.max_tokens * owned_columns;
    total += buffers[l];
  }
  if (total >= max_buffers)
    throw UsageError(
        fmt::format("page pool: {} pages for {} tokens a step; the limit is {}", total, options_.max_tokens, max_buffers));
  if (total > 0) pool_ = std::make_unique<PagePool>(device, options_.geometry.page_bytes, static_cast<std::uint32_t>(total));

  report_.layers.resize(n_layers);
  std::uint32_t first_buffer = 0;
  for (std::size_t l = 0; l < n_layers; ++l) {
    layers_.push_back(make_layer(l, first_buffer, buffers[l]));
    first_buffer += buffers[l];
  }
  if (options_.prefill_tokens > 0) chunk_ = std::make_unique<Chunk>(device, spec, options_.prefill_tokens, options_.output);
  const bool caches =
      std::any_of(layers_.begin(), layers_.end(), [](const auto& layer) { return !layer->advanced.empty(); });
  if (caches) filling_ = device.allocate_host(filling_batch * (spec.row_bytes + sizeof(std::uint32_t)));
  const std::size_t most = std::max(layers_.front()->out->bytes(), chunk_ ? chunk_->out->bytes() : 0);
  if (layers_.front()->out->host() == nullptr) fetched_ = device.allocate_host(most);
  worker_ = thread_executor().start("tier-worker", [this] { run_worker(); });
}

// A device that the host shares memory with can call the hash itself; others get its parameters.
void Tier::prepare_hash() {
  hash_kernel_ = "tier.hash";
  if (rows_device_->host() != nullptr) return;
  const KernelHash hash = hash_->for_kernels();
  if (hash.kernel.empty())
    throw UsageError(fmt::format("table {}: hash {} has no kernel for {}; use --device cpu", spec_.name, spec_.hash,
                                 device_.facts().backend));
  hash_kernel_ = hash.kernel;
  hash_parameters_ = device_.allocate_device(hash.parameters.size());
  const auto staging = device_.allocate_host(hash.parameters.size());
  std::memcpy(staging->host(), hash.parameters.data(), hash.parameters.size());
  side_->copy(hash_parameters_->device(), staging->host(), hash.parameters.size());
  side_->synchronize();
}

std::unique_ptr<Tier::Layer> Tier::make_layer(std::size_t l, std::uint32_t first_buffer, std::uint32_t buffers) {
  const auto max_lookups = static_cast<std::uint32_t>(options_.max_tokens * spec_.rows_per_token());
  auto layer = std::make_unique<Layer>();
  layer->tier = this;
  layer->index = l;
  layer->setup = options_.layers[l];
  layer->shard = make_shard(spec_, l, options_.shard_map, options_.ranks, options_.rank);
  layer->origin = options_.rows->origin(l, layer->shard);
  layer->descriptors = device_.allocate_host(max_lookups * sizeof(Descriptor));
  layer->out = device_.allocate_device(max_lookups * row_output_bytes());
  layer->signal = new (static_cast<Signal*>(signals_->host()) + l) Signal;
  layer->gate_before = static_cast<std::int64_t*>(stamps_->host()) + 2 + 2 * l;
  layer->gate_after = layer->gate_before + 1;
  layer->cache = cache_layout(spec_);

  LayerCoreOptions core;
  core.geometry = options_.geometry;
  core.fold = options_.folds[l];
  core.shard = layer->shard;
  core.resident = is_resident_source(layer->setup.source);
  core.policy = layer->setup.policy;
  core.cache_rows = layer->setup.cache_rows;
  core.cache_rows_reserved = layer->setup.cache_rows_reserved;
  core.max_lookups = max_lookups;
  core.first_buffer = first_buffer;
  core.buffers = buffers;
  if (options_.skip_unseen && !core.resident) layer->seen = options_.skip_unseen->bits(l).data();
  core.seen = layer->seen;
  core.descriptors = static_cast<Descriptor*>(layer->descriptors->host());
  core.row_dedup = options_.row_dedup;
  core.page_dedup = options_.page_dedup;
  layer->core = std::make_unique<LayerCore>(core);
  if (core.resident) {
    if (!layer->setup.table)
      throw UsageError(fmt::format("placement: layer {} in {} has no table", spec_.layers[l].layer, layer->setup.source));
    return layer;
  }

  const std::size_t slots = layer->core->directory()->reserved();
  if (slots > 0) {
    layer->cache_memory = device_.allocate_device(slots * (layer->cache.value_bytes + layer->cache.scale_bytes));
    layer->cache.values = static_cast<std::byte*>(layer->cache_memory->device());
    layer->cache.scales = layer->cache.values + slots * layer->cache.value_bytes;
  }
  layer->advanced.resize((slots + 63) / 64);
  layer->source = &open_source(layer->setup);
  const int k = spec_.layers[l].layer;
  const ImageSegment& segment = layer->source->image.segment(k, options_.rank);
  if (segment.stored_pages != options_.folds[l].stored_pages)
    throw UsageError(fmt::format("{}: holds {} pages of layer {}, this run wants {}: stage it again with the run's size",
                                 layer->source->image.paths[0], segment.stored_pages, k, options_.folds[l].stored_pages));
  layer->segment = &segment;
  for (int i = 0; i < 2; ++i) {
    auto batch = std::make_unique<Batch>();
    batch->tier = this;
    batch->layer = layer.get();
    batch->faults.resize(buffers);
    batch->errors.resize(buffers);
    batch->read.user = batch.get();
    batch->read.done = [](ReadBatch& read) {
      auto& self = *static_cast<Batch*>(read.user);
      self.tier->pages_done(*self.layer, self);
    };
    layer->batches.push_back(std::move(batch));
  }
  return layer;
}

Tier::OpenSource& Tier::open_source(const LayerSetup& setup) {
  const auto same = [&](const auto& open) {
    const LayerSetup& other = open->setup;
    return other.source == setup.source && other.wrappers == setup.wrappers && other.disks == setup.disks &&
           other.threads == setup.threads && other.registration == setup.registration &&
           other.drop_cache == setup.drop_cache && other.hints == setup.hints && other.remote == setup.remote;
  };
  const auto found = std::find_if(sources_.begin(), sources_.end(), same);
  if (found != sources_.end()) return **found;
  auto open = std::make_unique<OpenSource>();
  open->setup = setup;
  open->image =
      is_remote_source(setup.source)
          ? open_remote_image(setup.remote, wanted_table(spec_, options_.shard_map, options_.ranks, *options_.rows))
          : open_image(setup.disks, spec_);
  require_image(open->image, options_.shard_map, options_.ranks, *options_.rows);
  SourceOptions source;
  source.threads = setup.threads;
  source.registration = setup.registration;
  source.verify_checksum = options_.verify_checksum;
  source.drop_cache = setup.drop_cache;
  source.hints = setup.hints;
  source.remote = setup.remote;
  open->pages = make_source(setup.source, open->image, *pool_, source, setup.wrappers);
  if (options_.decorate) open->pages = options_.decorate(std::move(open->pages));
  sources_.push_back(std::move(open));
  return *sources_.back();
}

}  // namespace slacktier

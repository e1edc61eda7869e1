#include "tier/control.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "platforms/error.hpp"
#include "tier/descriptor.hpp"
#include "tier/directory.hpp"
#include "tier/source.hpp"

namespace slacktier {
namespace {

constexpr std::size_t most_bytes = 1 << 20;
constexpr std::size_t most_ranks = 65536;

LayerControl read_layer(JsonFields fields) {
  LayerControl layer;
  auto known = source_names();
  for (const char* resident : {"dram", "hbm", "peer"}) known.emplace_back(resident);
  layer.source = fields.choice("source", known);
  layer.peer = fields.text("peer");
  if (layer.peer && layer.source != "peer") fields.fail("peer", "belongs to source \"peer\"");
  if (!layer.peer && layer.source == "peer")
    fields.fail("peer", "is missing: the GPU that holds the table, such as \"cuda:1\"");
  if (fields.value("wrappers")) {
    layer.wrappers.emplace();
    for (const JsonValue& wrapper : fields.list("wrappers")) {
      if (!wrapper.is_string()) fields.fail("wrappers", fmt::format("texts are needed, found {}", wrapper.dump()));
      layer.wrappers->push_back(wrapper.get<std::string>());
      try {
        check_wrapper(layer.wrappers->back());
      } catch (const UsageError& error) {
        fields.fail("wrappers", error.what());
      }
    }
  }
  if (auto delayed = fields.object("delayed")) {
    layer.delay.emplace();
    layer.delay->latency_us = delayed->real("latency_us", 0, 1e7).value_or(0);
    layer.delay->gb_per_s = delayed->real("gb_per_s", 0, 1e6).value_or(0);
    if (layer.delay->gb_per_s > 0 && layer.delay->gb_per_s < 1e-3)
      delayed->fail("gb_per_s", "0 (no limit), or 0.001 and more");
    delayed->finish();
  }
  if (auto remote = fields.object("remote")) {
    layer.remote.emplace();
    layer.remote->connect = remote->text("connect").value_or("");
    layer.remote->key_file = remote->text("key_file").value_or("");
    if (const auto granularity = remote->choice("granularity", {"page", "record"}))
      layer.remote->granularity = parse_granularity(*granularity);
    layer.remote->device = remote->text("device").value_or(layer.remote->device);
    if (const auto gid = remote->number("gid_index", 0, 1023)) layer.remote->gid_index = static_cast<int>(*gid);
    if (const auto pairs = remote->number("queue_pairs", 1, 64)) layer.remote->queue_pairs = static_cast<int>(*pairs);
    if (layer.source && !is_remote_source(*layer.source))
      fields.fail("remote", "belongs to sources that read from other nodes");
    remote->finish();
  }
  if (const auto read = fields.choice("read", {"prefetch", "on-demand"})) layer.on_demand = *read == "on-demand";
  if (auto cache = fields.object("page_cache")) {
    layer.drop_cache = cache->flag("drop");
    layer.hints = cache->flag("hints");
    cache->finish();
  }
  if (const auto disks = fields.number("disks", 1, 64)) layer.disks = static_cast<std::uint32_t>(*disks);
  if (const auto threads = fields.number("threads", 1, 64)) layer.threads = static_cast<int>(*threads);
  if (const JsonValue* rows = fields.value("cache_rows_per_rank"); rows && rows->is_array()) {
    if (rows->empty() || rows->size() > most_ranks)
      fields.fail("cache_rows_per_rank", "a number, or a list of one number for each rank, is needed");
    for (const JsonValue& entry : *rows) {
      if (!entry.is_number_unsigned() || entry.get<std::uint64_t>() > max_slots)
        fields.fail("cache_rows_per_rank",
                    fmt::format("whole numbers from 0 to {} are needed, found {}", max_slots, entry.dump()));
      layer.cache_rows.push_back(entry.get<std::uint64_t>());
    }
  } else if (const auto all = fields.number("cache_rows_per_rank", 0, UINT64_MAX)) {
    layer.cache_rows = {*all};
  }
  layer.cache_rows_reserved = fields.number("cache_rows_reserved_per_rank", 0, UINT64_MAX);
  fields.finish();
  return layer;
}

}  // namespace

Control read_control_fields(JsonFields& fields, const TableSpec& spec) {
  Control control;
  if (auto layers = fields.object("layers")) {
    std::vector<int> known;
    for (const auto& layer : spec.layers) known.push_back(layer.layer);
    if (const JsonValue* all = layers->value("all"))
      for (const int k : known) control.layers[k] = read_layer(JsonFields(*all, layers->place("all")));
    for (const auto& [key, value] : layers->json().items()) {
      if (key == "all") continue;
      const auto found =
          std::find_if(known.begin(), known.end(), [&name = key](int k) { return std::to_string(k) == name; });
      if (found == known.end())
        layers->fail(key,
                     fmt::format("table {} has no layer {}; its layers are {}", spec.name, key, fmt::join(known, ", ")));
      control.layers[*found] = read_layer(JsonFields(value, layers->place(key)));
    }
  }
  if (auto cache = fields.object("cache")) {
    control.policy = cache->choice("policy", directory_policies());
    control.hot_rows = cache->text("hot_rows");
    if (control.hot_rows && control.policy != "static")
      cache->fail("hot_rows", "belongs to policy \"static\"; other policies choose their rows themselves");
    cache->finish();
  }
  if (const auto order = fields.choice("order", {"layer-first", "interleaved"}))
    control.first_layer_first = *order == "layer-first";
  if (auto dedup = fields.object("dedup")) {
    control.row_dedup = dedup->flag("rows");
    control.page_dedup = dedup->flag("pages");
    dedup->finish();
  }
  control.skip_unseen = fields.text("skip_unseen");
  return control;
}

Control parse_control(std::string_view text, const std::string& file, const TableSpec& spec) {
  const JsonValue json = parse_strict_json(text, file);
  JsonFields envelope(json, file + ": ");
  const std::string schema = envelope.text("schema").value_or("");
  if (!schema.starts_with("slacktier/control/1.") && !schema.starts_with("slacktier/placement/1."))
    envelope.fail("schema", fmt::format("\"slacktier/control/1.0\" is needed (or a placement's), found \"{}\"", schema));
  for (const char* ignored : {"provenance", "warnings"}) envelope.value(ignored);
  if (const JsonValue* settings = envelope.value("settings");
      settings && settings->is_object() && settings->contains("table"))
    if (const JsonValue& table = (*settings)["table"]; table.is_string() && table.get<std::string>() != spec.name)
      envelope.fail("settings.table", fmt::format("is {}, the tier serves {}", table.dump(), spec.name));
  auto results = envelope.object("results");
  if (!results) envelope.fail("results", "is missing");
  envelope.finish();
  Control control = read_control_fields(*results, spec);
  if (const auto ms = results->real("watchdog_ms", 1, 3'600'000)) control.watchdog = static_cast<Nanos>(*ms * 1e6);
  for (const char* of_placements : {"name", "gate", "predicted", "decision", "host_bytes"}) results->value(of_placements);
  results->finish();
  return control;
}

ControlFile::News ControlFile::look() {
  struct stat now = {};
  if (::stat(path_.c_str(), &now) != 0) {
    if (!there_) return News::none;
    there_ = false;
    return News::gone;
  }
  const auto same = [](const timespec& a, const timespec& b) { return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec; };
  if (there_ && now.st_ino == last_.st_ino && now.st_size == last_.st_size && same(now.st_mtim, last_.st_mtim) &&
      same(now.st_ctim, last_.st_ctim))
    return News::none;
  there_ = true;
  last_ = now;
  text_.clear();
  const int fd = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return News::unreadable;
  ssize_t got = 0;
  char block[4096];
  do {
    got = ::read(fd, block, sizeof block);
    if (got > 0) text_.append(block, static_cast<std::size_t>(got));
  } while ((got > 0 && text_.size() <= most_bytes) || (got < 0 && errno == EINTR));
  ::close(fd);
  return got < 0 || text_.size() > most_bytes ? News::unreadable : News::changed;
}

}  // namespace slacktier

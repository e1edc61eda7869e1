#include "platforms/provenance.hpp"

#include <optional>
#include <string>

namespace slacktier {
namespace {

using Json = nlohmann::ordered_json;

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

}  // namespace

Json host_json(const HostFacts& facts) {
  Json json;
  json["hostname"] = text_or_null(facts.hostname);
  json["kernel"] = text_or_null(facts.kernel);
  json["os_release"] = text_or_null(facts.os_release);
  json["cpu_model"] = text_or_null(facts.cpu_model);
  json["cores"] = facts.cores;
  json["cores_online"] = facts.cores_online;
  json["numa_nodes"] = facts.numa_nodes;
  json["memory_total_bytes"] = facts.memory_total;
  json["memory_available_bytes"] = facts.memory_available;
  json["huge_pages"] = text_or_null(facts.huge_pages);
  json["cgroup_memory_limit_bytes"] = or_null(facts.cgroup_memory_limit);
  json["cgroup_memory_high_bytes"] = or_null(facts.cgroup_memory_high);
  json["memlock_soft_bytes"] = or_null(facts.memlock_soft);
  json["memlock_hard_bytes"] = or_null(facts.memlock_hard);
  json["memlock_exempt"] = facts.memlock_exempt;
  json["io_uring_disabled"] = or_null(facts.io_uring_disabled);
  return json;
}

Json storage_json(const StorageFacts& facts) {
  const PathFacts& path = facts.path;
  const DiskFacts& disk = facts.disk;
  Json json;
  json["path"] = path.path;
  json["block_device"] = path.block_device;
  json["file_system"] = {{"type", text_or_null(path.mount.type)},
                         {"mount_point", text_or_null(path.mount.point)},
                         {"source", text_or_null(path.mount.source)},
                         {"options", text_or_null(path.mount.options)}};
  json["free_bytes"] = path.block_device ? Json(nullptr) : Json(path.free_bytes);
  json["direct_io"] = {{"works", facts.direct.works},
                       {"block_bytes", facts.direct.works ? Json(facts.direct.block) : Json(nullptr)},
                       {"reason", text_or_null(facts.direct.reason)},
                       {"memory_align_bytes", or_null(path.memory_align)},
                       {"offset_align_bytes", or_null(path.offset_align)}};
  json["extents"] = nullptr;
  if (facts.extents)
    json["extents"] = {{"bytes", facts.extents->bytes},
                       {"count", facts.extents->extents},
                       {"hole_bytes", facts.extents->holes},
                       {"unwritten_bytes", facts.extents->unwritten},
                       {"encoded_bytes", facts.extents->encoded}};
  json["device"] = text_or_null(disk.name);
  if (disk.name.empty()) return json;
  json["partition"] = text_or_null(disk.partition);
  json["through"] = disk.through;
  json["members"] = disk.members;
  json["attachment"] = text_or_null(disk.attachment);
  json["model"] = text_or_null(disk.model);
  json["serial"] = text_or_null(disk.serial);
  json["wwid"] = text_or_null(disk.wwid);
  json["firmware"] = text_or_null(disk.firmware);
  json["bytes"] = disk.bytes;
  json["nvme_namespace"] = or_null(disk.nvme_namespace);
  json["logical_block_bytes"] = or_null(disk.logical_block);
  json["physical_block_bytes"] = or_null(disk.physical_block);
  json["rotational"] = or_null(disk.rotational);
  json["scheduler"] = text_or_null(disk.scheduler);
  json["nomerges"] = or_null(disk.nomerges);
  json["queue_requests"] = or_null(disk.queue_requests);
  json["read_ahead_bytes"] = or_null(disk.read_ahead_bytes);
  json["write_cache"] = text_or_null(disk.write_cache);
  json["numa_node"] = or_null(disk.numa_node);
  json["temperature_c"] = or_null(disk.temperature_c);
  json["pcie"] = nullptr;
  if (disk.pcie)
    json["pcie"] = {{"address", disk.pcie->address},
                    {"speed", disk.pcie->speed},
                    {"width", or_null(disk.pcie->width)},
                    {"max_speed", text_or_null(disk.pcie->max_speed)},
                    {"max_width", or_null(disk.pcie->max_width)}};
  return json;
}

}  // namespace slacktier

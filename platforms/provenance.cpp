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
  json["memlock_soft_bytes"] = or_null(facts.memlock_soft);
  json["memlock_hard_bytes"] = or_null(facts.memlock_hard);
  json["io_uring_disabled"] = or_null(facts.io_uring_disabled);
  return json;
}

}  // namespace slacktier

// NUMA nodes: where devices are, and memory beside them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <system_error>

namespace slacktier {

// The node of an RDMA device, or of the network device below it; nothing where the system has no nodes or does not tell.
// `root` comes before /sys (see proc_text.hpp).
std::optional<int> rdma_device_node(const std::string& device, const std::string& root = "");

// From now on, pages of this memory that are touched for the first time come from `node`, others only when it has none left.
// Containers may refuse this (EPERM).
std::error_code prefer_node(void* memory, std::size_t bytes, int node);

// Of 1,024 pages spread over the memory, the part that is on `node`; nothing when the system does not tell.
std::optional<double> share_on_node(const void* memory, std::size_t bytes, int node);

}  // namespace slacktier

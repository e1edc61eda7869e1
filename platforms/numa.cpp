#include "platforms/numa.hpp"

#include <fmt/format.h>
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <vector>

#include "platforms/proc_text.hpp"

namespace slacktier {
namespace {

constexpr std::size_t most_nodes = 1024;
constexpr std::size_t page_bytes = 4096;

// A device's own node, or that of the bus it hangs on, as with virtual ones. -1 stands for none and is no number here.
std::optional<int> node_of(const std::string& device) {
  for (const char* file : {"/device/numa_node", "/device/../numa_node"})
    if (const auto node = leading_number(read_line(device + file).value_or("")); node && *node < most_nodes)
      return static_cast<int>(*node);
  return std::nullopt;
}

}  // namespace

std::optional<int> rdma_device_node(const std::string& device, const std::string& root) {
  const std::string folder = fmt::format("{}/sys/class/infiniband/{}", root, device);
  if (const auto node = node_of(folder)) return node;
  const auto network = read_line(folder + "/ports/1/gid_attrs/ndevs/0");
  return network ? node_of(fmt::format("{}/sys/class/net/{}", root, *network)) : std::nullopt;
}

std::error_code prefer_node(void* memory, std::size_t bytes, int node) {
  constexpr std::size_t word = 8 * sizeof(unsigned long);
  std::array<unsigned long, most_nodes / word> nodes{};
  const auto bit = static_cast<std::size_t>(node);
  if (node < 0 || bit >= most_nodes) return {EINVAL, std::generic_category()};
  nodes[bit / word] = 1ul << (bit % word);
  // The kernel takes one bit less than it is told of.
  if (::syscall(SYS_mbind, memory, bytes, MPOL_PREFERRED, nodes.data(), most_nodes + 1, 0) == 0) return {};
  return {errno, std::generic_category()};
}

std::optional<double> share_on_node(const void* memory, std::size_t bytes, int node) {
  const std::size_t pages = bytes / page_bytes, looks = std::min<std::size_t>(pages, 1024);
  if (looks == 0) return std::nullopt;
  std::vector<void*> at;
  for (std::size_t i = 0; i < looks; ++i)
    at.push_back(static_cast<char*>(const_cast<void*>(memory)) + pages * i / looks * page_bytes);
  std::vector<int> nodes(looks, -1);
  if (::syscall(SYS_move_pages, 0, looks, at.data(), nullptr, nodes.data(), 0) != 0) return std::nullopt;
  return static_cast<double>(std::count(nodes.begin(), nodes.end(), node)) / static_cast<double>(looks);
}

}  // namespace slacktier

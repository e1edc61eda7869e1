#include "platforms/numa.hpp"

#include <cerrno>
#include <cstring>
#include <system_error>

#include "platforms/host.hpp"
#include "platforms/memory.hpp"
#include "tests/catch.hpp"
#include "tests/unit/platforms/proc_tree.hpp"

using namespace slacktier;
using slacktier::test::ProcTree;

TEST_CASE("An RDMA device is at its own NUMA node, or at that of the network device below it", "[numa]") {
  const ProcTree tree;
  const auto node = [&](const char* device) { return rdma_device_node(device, tree.root()); };
  CHECK_FALSE(node("mlx5_0"));
  tree.write("/sys/class/infiniband/mlx5_0/device/numa_node", "1\n");
  tree.write("/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0", "ens1\n");
  tree.write("/sys/class/net/ens1/device/numa_node", "0\n");
  CHECK(node("mlx5_0") == 1);
  // Soft-RoCE has no device of its own, and the card below it may be virtual: its bus has the node.
  tree.write("/sys/class/infiniband/rxe0/ports/1/gid_attrs/ndevs/0", "eth0\n");
  CHECK_FALSE(node("rxe0"));
  tree.write("/sys/class/net/eth0/device/vendor", "0x1af4\n");
  tree.write("/sys/class/net/eth0/numa_node", "3\n");
  CHECK(node("rxe0") == 3);
  // A machine without nodes says -1.
  tree.write("/sys/class/infiniband/mlx5_1/device/numa_node", "-1\n");
  CHECK_FALSE(node("mlx5_1"));
}

TEST_CASE("Memory comes from the node that is asked for", "[numa]") {
  HostMemory memory(1 << 20, false);
  CHECK(prefer_node(memory.data(), memory.bytes(), -1).value() == EINVAL);
  CHECK(prefer_node(memory.data(), memory.bytes(), 1023).value() != 0);
  const std::error_code refused = prefer_node(memory.data(), memory.bytes(), 0);
  if (refused) {  // by a container
    CHECK((refused == std::errc::operation_not_permitted || refused == std::errc::function_not_supported));
    return;
  }
  std::memset(memory.data(), 1, memory.bytes());
  const auto share = share_on_node(memory.data(), memory.bytes(), 0);
  // Preferred, not forced: of several nodes, one that is full gives none.
  if (share && read_host_facts().numa_nodes == 1) CHECK(*share == 1);
  CHECK(share_on_node(memory.data(), 0, 0) == std::nullopt);
}

#include <algorithm>
#include <cstdint>

#include "platforms/host.hpp"
#include "tier/tier.hpp"

namespace slacktier {

HostTable::HostTable(Device& device, const TableSpec& spec, const RowOrigin& origin, std::uint64_t rows)
    : memory_(device.allocate_host(rows * spec.row_bytes)) {
  auto* base = static_cast<std::byte*>(memory_->host());
  const std::uint64_t workers = std::max<std::uint64_t>(1, read_host_facts().cores);
  const std::uint64_t part = (rows + workers - 1) / workers;
  std::vector<std::unique_ptr<Task>> tasks;
  for (std::uint64_t begin = 0; begin < rows; begin += part)
    tasks.push_back(thread_executor().start("host-table", [&, begin] {
      origin.rows(begin, std::min(begin + part, rows) - begin, base + begin * spec.row_bytes);
    }));
  for (auto& task : tasks) task->join();
}

}  // namespace slacktier

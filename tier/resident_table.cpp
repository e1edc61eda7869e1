#include "tier/resident_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "platforms/error.hpp"
#include "platforms/executor.hpp"
#include "platforms/host.hpp"
#include "platforms/quantity.hpp"

namespace slacktier {
namespace {

constexpr std::uint64_t staging_bytes = std::uint64_t{64} << 20;

// Records of rows [first, first + count), by all CPUs.
void write_rows(const RowOrigin& origin, const TableSpec& spec, std::uint64_t first, std::uint64_t count, std::byte* to) {
  const std::uint64_t workers = std::max<std::uint64_t>(1, read_host_facts().cores);
  const std::uint64_t part = (count + workers - 1) / workers;
  std::vector<std::unique_ptr<Task>> tasks;
  for (std::uint64_t begin = 0; begin < count; begin += part)
    tasks.push_back(thread_executor().start("resident-table", [&, begin] {
      origin.rows(first + begin, std::min(begin + part, count) - begin, to + begin * spec.row_bytes);
    }));
  for (auto& task : tasks) task->join();
}

}  // namespace

bool is_resident_source(std::string_view source) { return source == "dram" || source == "hbm" || source == "peer"; }

ResidentTable::ResidentTable(Device& device, const TableSpec& spec, const RowOrigin& origin, std::uint64_t rows,
                             const std::string& source, const std::string& peer) {
  if (!is_resident_source(source))
    throw UsageError(fmt::format("source {}: no table is kept there; use dram, hbm or peer", source));
  if (source != "peer" && !peer.empty()) throw UsageError(fmt::format("peer {}: belongs to source peer", peer));
  const std::uint64_t bytes = rows * spec.row_bytes;
  try {
    memory_ = source == "dram"  ? device.allocate_host(bytes)
              : source == "hbm" ? device.allocate_device(bytes)
                                : device.allocate_peer(peer, bytes);
  } catch (const EnvironmentError& error) {
    throw EnvironmentError(fmt::format("{} rows of table {} ({}) do not go to {}: {}", rows, spec.name, bytes_text(bytes),
                                       source == "dram"  ? "host memory"
                                       : source == "hbm" ? "device memory"
                                                         : "the memory of " + peer,
                                       error.what()));
  }
  on_host_ = memory_->host() != nullptr;
  description_ = fmt::format("{}, {}",
                             source == "dram"  ? "host table"
                             : source == "hbm" ? "device memory"
                                               : "memory of " + peer,
                             bytes_text(bytes));
  if (on_host_) {
    write_rows(origin, spec, 0, rows, static_cast<std::byte*>(memory_->host()));
    return;
  }
  const std::uint64_t at_once = std::max<std::uint64_t>(1, staging_bytes / spec.row_bytes);
  const auto staging = device.allocate_host(std::min(at_once, rows) * spec.row_bytes);
  const auto stream = device.create_stream("resident-table");
  for (std::uint64_t first = 0; first < rows; first += at_once) {
    const std::uint64_t count = std::min(at_once, rows - first);
    write_rows(origin, spec, first, count, static_cast<std::byte*>(staging->host()));
    stream->copy(static_cast<std::byte*>(memory_->device()) + first * spec.row_bytes, staging->host(),
                 count * spec.row_bytes);
    stream->synchronize();
  }
}

}  // namespace slacktier

// The table that servers hold, as an image that a page source reads.
#pragma once

#include <string>

#include "tier/image.hpp"
#include "tier/protocol.hpp"
#include "tier/remote_options.hpp"

namespace slacktier {

// Asks every server for its header and joins their segments: paths are the servers' addresses. All must hold shards of one
// staging. What `wanted` leaves empty may be anything. Throws UsageError (refused: why; servers that do not belong together,
// naming field and address), EnvironmentError (no address), std::system_error (not reachable).
ImageHeader open_remote_image(const RemoteOptions& options, const protocol::Wanted& wanted = {});
// What a run expects of a table, for the servers to compare.
protocol::Wanted wanted_table(const TableSpec& spec, ShardMap map, std::uint32_t ranks, const TableRows& rows);

// A server's metrics as JSON text. Throws as above.
std::string read_server_metrics(const std::string& server, const std::string& key_file);

}  // namespace slacktier

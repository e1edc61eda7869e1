#include "tier/remote_image.hpp"

#include <fmt/format.h>

#include "platforms/error.hpp"
#include "tier/remote/connection.hpp"

namespace slacktier {
namespace {

constexpr Nanos patience = 5'000'000'000;

}  // namespace

ImageHeader open_remote_image(const RemoteOptions& options, const protocol::Wanted& wanted) {
  if (options.connect.empty())
    throw UsageError("no server is named: give --connect host:port, or \"remote\" in the placement");
  if (options.key_file.empty())
    throw UsageError("no key is named: give --key-file, or \"remote.key_file\" in the placement");
  const auto key = load_key(options.key_file);
  ImageHeader joined;
  for (const std::string& server : parse_servers(options.connect)) {
    const ImageHeader image = Connection(server, key, wanted, patience).image();
    if (joined.segments.empty()) {
      joined = image;
      continue;
    }
    const auto require = [&](const char* field, const auto& is, const auto& should) {
      if (is != should)
        throw UsageError(fmt::format("{}: {} is {}, that of {} is {}: all servers must hold shards of one staging", server,
                                     field, is, joined.paths.front(), should));
    };
    require("table fingerprint", image.fingerprint, joined.fingerprint);
    require("rows' origin", image.origin, joined.origin);
    require("shard map", std::string(to_string(image.shard_map)), std::string(to_string(joined.shard_map)));
    require("number of ranks", image.ranks, joined.ranks);
    require("page size", image.geometry.page_bytes, joined.geometry.page_bytes);
    require("staging", image.nonce, joined.nonce);
    for (const ImageSegment& segment : image.segments) {
      for (const ImageSegment& other : joined.segments)
        if (other.layer == segment.layer && other.rank == segment.rank)
          throw UsageError(fmt::format("{}: holds layer {} rank {}, and so does another of the servers named", server,
                                       segment.layer, segment.rank));
      joined.segments.push_back(segment);
    }
    joined.paths.push_back(server);
  }
  return joined;
}

protocol::Wanted wanted_table(const TableSpec& spec, ShardMap map, std::uint32_t ranks, const TableRows& rows) {
  protocol::Wanted wanted;
  wanted.fingerprint = spec.fingerprint();
  wanted.origin = rows.describe();
  wanted.shard_map = to_string(map);
  wanted.ranks = ranks;
  return wanted;
}

std::string read_server_metrics(const std::string& server, const std::string& key_file) {
  protocol::Wanted wanted;
  wanted.purpose = protocol::Purpose::metrics;
  const auto key = load_key(key_file);
  Connection connection(server, key, wanted, patience);
  const Nanos deadline = monotonic_clock().now() + patience;
  connection.send(protocol::encode(protocol::Type::metrics, 1, {}), deadline);
  const Connection::Received answer = connection.receive(deadline);
  if (answer.type != protocol::Type::metrics) throw UsageError(fmt::format("{}: answers with something else", server));
  return {reinterpret_cast<const char*>(answer.payload.data()), answer.payload.size()};
}

}  // namespace slacktier

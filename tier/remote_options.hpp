// How tables in other nodes' memory are reached: what a placement says beside the source's name.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace slacktier {

// What crosses the wire for a missing row: its whole page, or the record alone and the page's trailer, which says whose
// bytes they are. A record alone carries no checksum.
enum class Granularity { page, record };
Granularity parse_granularity(const std::string& text);  // throws UsageError
const char* to_string(Granularity granularity);

struct RemoteOptions {
  std::string connect;   // "host:port,host:port": each server holds other segments (layer, rank) of one table
  std::string key_file;  // of the key that servers and readers share
  Granularity granularity = Granularity::record;
  std::string device = "auto";  // RDMA device of source rdma, or "a,b", one a server; auto: the first active
  int gid_index = -1;           // of that device; -1: the best
  int queue_pairs = 2;          // for each thread, 1 to 64
  bool operator==(const RemoteOptions&) const = default;
};

// "host:port,[::1]:port" taken apart. Throws UsageError naming the part that is no address.
std::vector<std::string> parse_servers(const std::string& connect);

// The key in a file, without the line's end. Throws UsageError naming the file: not there, shorter than 16 bytes, longer
// than 4 KiB, or readable by others than its owner.
std::vector<std::byte> load_key(const std::string& file);

}  // namespace slacktier

#include <fmt/format.h>
#include <sys/stat.h>

#include <cstdint>
#include <fstream>
#include <iterator>

#include "platforms/error.hpp"
#include "tier/remote/address.hpp"
#include "tier/remote_options.hpp"

namespace slacktier {

Granularity parse_granularity(const std::string& text) {
  if (text == "page") return Granularity::page;
  if (text == "record") return Granularity::record;
  throw UsageError(fmt::format("granularity '{}': use page or record", text));
}

const char* to_string(Granularity granularity) { return granularity == Granularity::page ? "page" : "record"; }

Address parse_address(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  Address address;
  if (colon != std::string::npos) {
    address.host = text.substr(0, colon);
    address.port = text.substr(colon + 1);
    if (address.host.starts_with('[') && address.host.ends_with(']'))
      address.host = address.host.substr(1, address.host.size() - 2);
    else if (address.host.find(':') != std::string::npos)
      address.host.clear();  // an IPv6 address without brackets: where it ends is a guess
  }
  const bool number = !address.port.empty() && address.port.size() <= 5 &&
                      address.port.find_first_not_of("0123456789") == std::string::npos && std::stoi(address.port) <= 65535;
  if (address.host.empty() || !number)
    throw UsageError(fmt::format("'{}' is no address: write host:port, or [address]:port for IPv6", text));
  return address;
}

std::vector<std::string> split_list(const std::string& list) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t comma = std::min(list.find(',', at), list.size());
    parts.push_back(list.substr(at, comma - at));
    at = comma + 1;
  }
  return parts;
}

std::vector<std::string> parse_servers(const std::string& connect) {
  std::vector<std::string> servers = split_list(connect);
  for (const std::string& server : servers)
    if (parse_address(server).port == "0")
      throw UsageError(fmt::format("'{}': port 0 is nobody's; the server prints its own", server));
  if (servers.size() > 64) throw UsageError(fmt::format("{} servers: at most 64 can be read from", servers.size()));
  return servers;
}

std::vector<std::byte> load_key(const std::string& file) {
  struct stat facts = {};
  std::ifstream in(file, std::ios::binary);
  if (!in || ::stat(file.c_str(), &facts) != 0)
    throw UsageError(
        fmt::format("key file {}: cannot be read; make one with: (umask 077; openssl rand -hex 32 > {})", file, file));
  if ((facts.st_mode & 077) != 0)
    throw UsageError(fmt::format("key file {}: others than its owner may read it; chmod 600 {}", file, file));
  constexpr std::size_t most = 4096;
  std::string text;
  for (std::istreambuf_iterator<char> c(in), end; c != end && text.size() <= most; ++c) text.push_back(*c);
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  if (text.size() < 16 || text.size() > most)
    throw UsageError(fmt::format("key file {}: holds {} bytes; a key has from 16 to {}", file, text.size(), most));
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  return {bytes, bytes + text.size()};
}

}  // namespace slacktier

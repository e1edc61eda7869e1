// The protocol between the server of a table in memory and its readers, as bytes alone: no sockets, no clocks, nothing that
// trusts what it is given. All numbers are little-endian.
//
// A frame is magic (u32), version (u16), type (u16), length of the payload (u32), id (u32), payload. This header is the same
// in every version, so that a refusal can always be read. The course of a connection:
//   reader   hello      32 random bytes
//   server   challenge  32 random bytes
//   reader   proof      HMAC-SHA256(key, "reader" hello challenge wanted), wanted
//   server   welcome    HMAC-SHA256(key, "server" hello challenge wanted image), image (a header's JSON)
//            or refuse  code (u16), message
//   reader   read       pages and the records wanted of them; answered by `pages`, in order, several on the way at once
//            attach     its queue pairs; answered by `attached`: the server's, and where its memory is for remote reads
//            ping, metrics
// Both sides prove that they hold the key before the server says a word about its table. What follows is neither encrypted
// nor authenticated frame by frame: stamps and checksums of pages find damage, not malice; run it in a trusted network.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace slacktier::protocol {

inline constexpr std::uint32_t magic = 0x544B4C53;  // "SLKT"
inline constexpr std::uint16_t version = 1;
inline constexpr std::size_t frame_header_bytes = 16;
inline constexpr std::size_t most_reads = 4096;  // of one request
inline constexpr std::size_t most_text = 1024;   // bytes of a message or a field
inline constexpr std::size_t most_image_text = std::size_t{1} << 20;

enum class Type : std::uint16_t {
  hello = 1,
  challenge,
  proof,
  welcome,
  refuse,
  read,
  pages,
  ping,
  pong,
  metrics,
  attach,
  attached
};
inline constexpr std::uint16_t last_type = static_cast<std::uint16_t>(Type::attached);

enum class Refusal : std::uint16_t { malformed = 1, other_version, other_key, other_table, busy, no_rdma };

using Nonce = std::array<std::byte, 32>;
using Mac = std::array<std::byte, 32>;
using Bytes = std::vector<std::byte>;
using View = std::span<const std::byte>;

struct Frame {
  std::uint16_t version = 0;
  Type type = Type::hello;
  std::uint32_t id = 0;
  View payload;
};

// The frame at the front of `input`: none yet (state more), one of `bytes` bytes, or none ever (bad, with the problem).
// A length is refused as soon as its header is there: nobody can make the other side wait for, or hold, more than its type
// allows. A frame of another version is read when its header is sound, for its type to be looked at.
struct Parsed {
  enum class State { more, frame, bad } state = State::more;
  Frame frame;
  std::size_t bytes = 0;
  const char* problem = "";
};
Parsed parse_frame(View input);

// What a reader wants and expects of the table. Empty or 0: whatever the server has.
enum class Purpose : std::uint8_t { pages = 1, metrics = 2 };
struct Wanted {
  Purpose purpose = Purpose::pages;
  std::string fingerprint, origin;  // of the table's spec; of its rows, seed included
  std::string shard_map;
  std::uint32_t ranks = 0;
  std::uint64_t nonce = 0;  // of the image's staging
  bool operator==(const Wanted&) const = default;
};
struct Proof {
  Mac mac{};
  Wanted wanted;
};
struct Welcome {
  Mac mac{};
  std::string image;
};
struct Refused {
  Refusal code = Refusal::malformed;
  std::string message;
};
// One page: the records of `wanted` as in PageRead, and the trailer; or the whole page when all bits are set.
struct PageWanted {
  std::uint32_t segment = 0, page = 0;
  std::uint64_t records = ~std::uint64_t{0};
};
inline constexpr std::size_t page_wanted_bytes = 16;

// What the ends of RDMA connections tell each other. Numbers are in the host's order.
using Gid = std::array<std::byte, 16>;
enum class GidKind : std::uint8_t { infiniband, roce_v1, roce_v2 };
struct QueueEnd {
  std::uint32_t number = 0, sequence = 0;  // of a queue pair; of its first packet
};
struct Attach {
  Gid gid{};
  GidKind kind = GidKind::roce_v2;
  std::uint16_t lid = 0;
  std::uint8_t mtu = 0;    // as verbs count them: 128 << mtu bytes
  std::uint8_t depth = 0;  // reads of one queue pair under way at once
  std::vector<QueueEnd> queues;
};
struct MemoryChunk {
  std::uint64_t address = 0, bytes = 0;
  std::uint32_t key = 0;
};
// The queues answer the reader's, one each; MTU and depth are what both can. The chunks make up the table's memory, in
// order.
struct Attached : Attach {
  std::vector<MemoryChunk> memory;
};
inline constexpr std::size_t most_queues = 64, most_chunks = 4096;

Bytes encode(Type type, std::uint32_t id, View payload, std::uint16_t with_version = version);
Bytes encode_wanted(const Wanted& wanted);  // what the proofs cover
Bytes encode_proof(const Proof& proof);
Bytes encode_welcome(const Welcome& welcome);
Bytes encode_refused(const Refused& refused);  // the message is cut to most_text
Bytes encode_attach(const Attach& attach);
Bytes encode_attached(const Attached& attached);
void append_page_wanted(Bytes& to, const PageWanted& wanted);

std::optional<Nonce> decode_nonce(View payload);
std::optional<Proof> decode_proof(View payload);
std::optional<Welcome> decode_welcome(View payload);
std::optional<Refused> decode_refused(View payload);
std::optional<Attach> decode_attach(View payload);      // of at least one queue
std::optional<Attached> decode_attached(View payload);  // of memory without gaps in its sizes
// Entry `i` of a read request of payload.size() / page_wanted_bytes entries.
PageWanted page_wanted(View payload, std::size_t i);

// HMAC-SHA256 over the label and the parts, each with its length. Comparison in constant time.
Mac prove(View key, const char* label, std::span<const View> parts);
bool equal(const Mac& a, const Mac& b);

}  // namespace slacktier::protocol

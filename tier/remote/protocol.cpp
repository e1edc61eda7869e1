#include "tier/protocol.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace slacktier::protocol {
namespace {

template <class Number>
void put(Bytes& to, Number value) {
  const std::size_t at = to.size();
  to.resize(at + sizeof value);
  std::memcpy(to.data() + at, &value, sizeof value);
}
void put(Bytes& to, View bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); }
void put(Bytes& to, const std::string& text) {
  put(to, static_cast<std::uint32_t>(text.size()));
  put(to, std::as_bytes(std::span(text)));
}

// Reads from the front; what is not there turns it bad, and it stays so.
class Reader {
 public:
  explicit Reader(View bytes) : left_(bytes) {}
  template <class Number>
  Number number() {
    Number value{};
    const View bytes = take(sizeof value);
    if (good_) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  template <std::size_t n>
  std::array<std::byte, n> array() {
    std::array<std::byte, n> value{};
    const View bytes = take(n);
    if (good_) std::copy(bytes.begin(), bytes.end(), value.begin());
    return value;
  }
  std::string text(std::size_t most) {
    const auto size = number<std::uint32_t>();
    if (size > most) good_ = false;
    const View bytes = take(good_ ? size : 0);
    return good_ ? std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()) : std::string();
  }
  bool good() const { return good_; }
  bool ended() const { return good_ && left_.empty(); }

 private:
  View take(std::size_t n) {
    if (!good_ || n > left_.size()) {
      good_ = false;
      return {};
    }
    const View front = left_.first(n);
    left_ = left_.subspan(n);
    return front;
  }
  View left_;
  bool good_ = true;
};

struct Limits {
  std::size_t least, most;
};
constexpr std::size_t attach_least = 16 + 1 + 2 + 1 + 1 + 4;
constexpr std::size_t wanted_most = 1 + 3 * (4 + most_text) + 4 + 8;

Limits payload_limits(Type type) {
  switch (type) {
    case Type::hello:
    case Type::challenge:
      return {32, 32};
    case Type::proof:
      return {32, 32 + wanted_most};
    case Type::welcome:
      return {36, 36 + most_image_text};
    case Type::refuse:
      return {6, 6 + most_text};
    case Type::read:
      return {page_wanted_bytes, most_reads * page_wanted_bytes};
    case Type::pages:
      return {0, most_reads * 65536};
    case Type::ping:
    case Type::pong:
      return {0, 0};
    case Type::metrics:
      return {0, 65536};
    case Type::attach:
      return {attach_least, attach_least + most_queues * 8};
    case Type::attached:
      return {attach_least + 4, attach_least + most_queues * 8 + 4 + most_chunks * 20};
  }
  return {0, 0};
}

void put_attach(Bytes& to, const Attach& attach) {
  put(to, View(attach.gid));
  put(to, static_cast<std::uint8_t>(attach.kind));
  put(to, attach.lid);
  put(to, attach.mtu);
  put(to, attach.depth);
  put(to, static_cast<std::uint32_t>(attach.queues.size()));
  for (const QueueEnd& queue : attach.queues) {
    put(to, queue.number);
    put(to, queue.sequence);
  }
}

// False for what makes no sense, whoever sends it.
bool read_attach(Reader& in, Attach& attach) {
  attach.gid = in.array<16>();
  const auto kind = in.number<std::uint8_t>();
  attach.kind = static_cast<GidKind>(kind);
  attach.lid = in.number<std::uint16_t>();
  attach.mtu = in.number<std::uint8_t>();
  attach.depth = in.number<std::uint8_t>();
  const auto n = in.number<std::uint32_t>();
  if (!in.good() || kind > 2 || attach.mtu < 1 || attach.mtu > 5 || attach.depth < 1 || n < 1 || n > most_queues)
    return false;
  for (std::uint32_t i = 0; i < n && in.good(); ++i) {
    QueueEnd queue;
    queue.number = in.number<std::uint32_t>();
    queue.sequence = in.number<std::uint32_t>();
    attach.queues.push_back(queue);
  }
  return in.good();
}

Wanted read_wanted(Reader& in) {
  Wanted wanted;
  wanted.purpose = static_cast<Purpose>(in.number<std::uint8_t>());
  wanted.fingerprint = in.text(most_text);
  wanted.origin = in.text(most_text);
  wanted.shard_map = in.text(most_text);
  wanted.ranks = in.number<std::uint32_t>();
  wanted.nonce = in.number<std::uint64_t>();
  return wanted;
}

}  // namespace

Parsed parse_frame(View input) {
  Parsed parsed;
  if (input.size() < frame_header_bytes) {
    // A wrong beginning is known before the header is whole: who speaks another protocol is not waited for.
    std::uint32_t front = 0;
    std::memcpy(&front, input.data(), std::min<std::size_t>(input.size(), 4));
    const std::uint32_t known = input.size() >= 4 ? 0xFFFFFFFFu : (std::uint32_t{1} << (8 * input.size())) - 1;
    if ((front & known) == (magic & known)) return parsed;
    parsed.state = Parsed::State::bad;
    parsed.problem = "not this protocol";
    return parsed;
  }
  Reader in(input);
  parsed.state = Parsed::State::bad;
  if (in.number<std::uint32_t>() != magic) {
    parsed.problem = "not this protocol";
    return parsed;
  }
  parsed.frame.version = in.number<std::uint16_t>();
  const auto type = in.number<std::uint16_t>();
  const auto length = in.number<std::uint32_t>();
  parsed.frame.id = in.number<std::uint32_t>();
  if (type == 0 || type > last_type) {
    parsed.problem = "unknown type of frame";
    return parsed;
  }
  parsed.frame.type = static_cast<Type>(type);
  const Limits limits = payload_limits(parsed.frame.type);
  // Of another version only its type matters, and refusals, which are the same in all.
  const bool foreign = parsed.frame.version != version && parsed.frame.type != Type::refuse;
  if (!foreign && (length < limits.least || length > limits.most)) {
    parsed.problem = "length out of bounds for its type";
    return parsed;
  }
  if (!foreign && parsed.frame.type == Type::read && length % page_wanted_bytes != 0) {
    parsed.problem = "a read request of broken entries";
    return parsed;
  }
  if (foreign) {
    parsed.state = Parsed::State::frame;
    parsed.bytes = frame_header_bytes;
    return parsed;
  }
  parsed.bytes = frame_header_bytes + length;
  parsed.state = input.size() < parsed.bytes ? Parsed::State::more : Parsed::State::frame;
  if (parsed.state == Parsed::State::frame) parsed.frame.payload = input.subspan(frame_header_bytes, length);
  return parsed;
}

Bytes encode(Type type, std::uint32_t id, View payload, std::uint16_t with_version) {
  Bytes out;
  out.reserve(frame_header_bytes + payload.size());
  put(out, magic);
  put(out, with_version);
  put(out, static_cast<std::uint16_t>(type));
  put(out, static_cast<std::uint32_t>(payload.size()));
  put(out, id);
  put(out, payload);
  return out;
}

Bytes encode_wanted(const Wanted& wanted) {
  Bytes out;
  put(out, static_cast<std::uint8_t>(wanted.purpose));
  for (const std::string* text : {&wanted.fingerprint, &wanted.origin, &wanted.shard_map})
    put(out, text->substr(0, most_text));
  put(out, wanted.ranks);
  put(out, wanted.nonce);
  return out;
}

Bytes encode_proof(const Proof& proof) {
  Bytes out;
  put(out, View(proof.mac));
  put(out, View(encode_wanted(proof.wanted)));
  return out;
}

Bytes encode_welcome(const Welcome& welcome) {
  Bytes out;
  put(out, View(welcome.mac));
  put(out, welcome.image);
  return out;
}

Bytes encode_refused(const Refused& refused) {
  Bytes out;
  put(out, static_cast<std::uint16_t>(refused.code));
  put(out, refused.message.substr(0, most_text));
  return out;
}

void append_page_wanted(Bytes& to, const PageWanted& wanted) {
  put(to, wanted.segment);
  put(to, wanted.page);
  put(to, wanted.records);
}

std::optional<Nonce> decode_nonce(View payload) {
  Reader in(payload);
  const auto nonce = in.array<32>();
  return in.ended() ? std::optional(nonce) : std::nullopt;
}

std::optional<Proof> decode_proof(View payload) {
  Reader in(payload);
  Proof proof;
  proof.mac = in.array<32>();
  proof.wanted = read_wanted(in);
  const bool known = proof.wanted.purpose == Purpose::pages || proof.wanted.purpose == Purpose::metrics;
  return in.ended() && known ? std::optional(proof) : std::nullopt;
}

std::optional<Welcome> decode_welcome(View payload) {
  Reader in(payload);
  Welcome welcome;
  welcome.mac = in.array<32>();
  welcome.image = in.text(most_image_text);
  return in.ended() ? std::optional(welcome) : std::nullopt;
}

std::optional<Refused> decode_refused(View payload) {
  Reader in(payload);
  Refused refused;
  refused.code = static_cast<Refusal>(in.number<std::uint16_t>());
  refused.message = in.text(most_text);
  return in.ended() ? std::optional(refused) : std::nullopt;
}

Bytes encode_attach(const Attach& attach) {
  Bytes out;
  put_attach(out, attach);
  return out;
}

Bytes encode_attached(const Attached& attached) {
  Bytes out;
  put_attach(out, attached);
  put(out, static_cast<std::uint32_t>(attached.memory.size()));
  for (const MemoryChunk& chunk : attached.memory) {
    put(out, chunk.address);
    put(out, chunk.bytes);
    put(out, chunk.key);
  }
  return out;
}

std::optional<Attach> decode_attach(View payload) {
  Reader in(payload);
  Attach attach;
  return read_attach(in, attach) && in.ended() ? std::optional(attach) : std::nullopt;
}

std::optional<Attached> decode_attached(View payload) {
  Reader in(payload);
  Attached attached;
  if (!read_attach(in, attached)) return std::nullopt;
  const auto n = in.number<std::uint32_t>();
  if (n > most_chunks) return std::nullopt;
  for (std::uint32_t i = 0; i < n && in.good(); ++i) {
    MemoryChunk chunk;
    chunk.address = in.number<std::uint64_t>();
    chunk.bytes = in.number<std::uint64_t>();
    chunk.key = in.number<std::uint32_t>();
    attached.memory.push_back(chunk);
  }
  return in.ended() ? std::optional(attached) : std::nullopt;
}

PageWanted page_wanted(View payload, std::size_t i) {
  Reader in(payload.subspan(i * page_wanted_bytes, page_wanted_bytes));
  PageWanted wanted;
  wanted.segment = in.number<std::uint32_t>();
  wanted.page = in.number<std::uint32_t>();
  wanted.records = in.number<std::uint64_t>();
  return wanted;
}

Mac prove(View key, const char* label, std::span<const View> parts) {
  Bytes message;
  put(message, std::string(label));
  for (const View part : parts) {
    put(message, static_cast<std::uint64_t>(part.size()));
    put(message, part);
  }
  Mac mac{};
  unsigned int size = 0;
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(message.data()),
           message.size(), reinterpret_cast<unsigned char*>(mac.data()), &size) == nullptr ||
      size != mac.size())
    throw std::runtime_error("HMAC-SHA256 failed in OpenSSL");
  return mac;
}

bool equal(const Mac& a, const Mac& b) { return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0; }

}  // namespace slacktier::protocol

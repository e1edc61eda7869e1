#include "tier/server_session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace slacktier {

using namespace protocol;

std::string difference(const Wanted& wanted, const ImageHeader& header) {
  const auto differs = [](const char* field, const auto& has, const auto& should) {
    return fmt::format("the {} served is {}, the reader wants {}", field, has, should);
  };
  if (!wanted.fingerprint.empty() && wanted.fingerprint != header.fingerprint)
    return differs("table fingerprint", fmt::format("{} ({})", header.fingerprint, header.table), wanted.fingerprint);
  if (!wanted.origin.empty() && wanted.origin != header.origin) return differs("rows' origin", header.origin, wanted.origin);
  if (!wanted.shard_map.empty() && wanted.shard_map != to_string(header.shard_map))
    return differs("shard map", to_string(header.shard_map), wanted.shard_map);
  if (wanted.ranks != 0 && wanted.ranks != header.ranks) return differs("number of ranks", header.ranks, wanted.ranks);
  if (wanted.nonce != 0 && wanted.nonce != header.nonce)
    return differs("staging", fmt::format("{:016x}", header.nonce), fmt::format("{:016x}", wanted.nonce));
  return "";
}

void ServerSession::received(View bytes) {
  if (state_ == State::over) return;
  const std::size_t held = input_.size();
  input_.resize(held + bytes.size());
  std::ranges::copy(bytes, input_.begin() + static_cast<std::ptrdiff_t>(held));
  std::size_t used = 0;
  while (state_ != State::over && used < input_.size()) {
    const Parsed parsed = parse_frame(View(input_).subspan(used));
    if (parsed.state == Parsed::State::more) break;
    if (parsed.state == Parsed::State::bad) {
      refuse(Refusal::malformed, parsed.problem);
      break;
    }
    handle(parsed.frame);
    used += parsed.bytes;
  }
  if (state_ == State::over) used = input_.size();
  input_.erase(input_.begin(), input_.begin() + static_cast<std::ptrdiff_t>(used));
}

void ServerSession::handle(const Frame& frame) {
  if (frame.version != version)
    return refuse(Refusal::other_version,
                  fmt::format("this server speaks version {} of the protocol, the reader version {}; update the older one",
                              version, frame.version));
  switch (frame.type) {
    case Type::hello:
      if (state_ != State::hello) break;
      theirs_ = *decode_nonce(frame.payload);
      state_ = State::proof;
      return reply(Type::challenge, frame.id, own_);
    case Type::proof:
      if (state_ != State::proof) break;
      return prove(frame);
    case Type::read:
      if (state_ != State::serving) break;
      return read(frame);
    case Type::attach:
      if (state_ != State::serving || grant_) break;
      return attach(frame);
    case Type::ping:
      if (state_ != State::serving) break;
      return reply(Type::pong, frame.id, {});
    case Type::metrics: {
      if (state_ != State::serving) break;
      const std::string text = facts_.metrics ? facts_.metrics() : "{}";
      return reply(Type::metrics, frame.id, std::as_bytes(std::span(text)));
    }
    default:
      break;
  }
  refuse(Refusal::malformed, "a frame that is out of turn");
}

void ServerSession::prove(const Frame& frame) {
  const auto proof = decode_proof(frame.payload);
  if (!proof) return refuse(Refusal::malformed, "a proof that cannot be read");
  const Bytes wanted = encode_wanted(proof->wanted);
  const View reader_parts[] = {theirs_, own_, wanted};
  if (!equal(proof->mac, protocol::prove(facts_.key, "reader", reader_parts)))
    return refuse(Refusal::other_key, "the keys differ: give both sides the same key file");
  if (const std::string what = difference(proof->wanted, facts_.table.header()); !what.empty())
    return refuse(Refusal::other_table, what);
  Welcome welcome;
  welcome.image = facts_.table.header_text();
  const View server_parts[] = {theirs_, own_, wanted, std::as_bytes(std::span(welcome.image))};
  welcome.mac = protocol::prove(facts_.key, "server", server_parts);
  state_ = State::serving;
  reply(Type::welcome, frame.id, encode_welcome(welcome));
}

void ServerSession::read(const Frame& frame) {
  const ImageHeader& header = facts_.table.header();
  const PageGeometry& g = header.geometry;
  const std::size_t n = frame.payload.size() / page_wanted_bytes;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const PageWanted wanted = page_wanted(frame.payload, i);
    if (wanted.segment >= header.segments.size() || wanted.page >= header.segments[wanted.segment].stored_pages)
      return refuse(Refusal::malformed,
                    fmt::format("page {} of segment {} is not served: out of bounds", wanted.page, wanted.segment));
    if (wanted.records == whole_page) {
      bytes += g.page_bytes;
      continue;
    }
    if (wanted.records == 0 || (g.rows_per_page < 64 && wanted.records >> g.rows_per_page != 0))
      return refuse(Refusal::malformed, fmt::format("records {:#x} are not those of a page", wanted.records));
    for_records(wanted.records, g, [&](std::size_t, std::size_t size) { bytes += size; });
  }
  Bytes head = encode(Type::pages, frame.id, {});
  const auto length = static_cast<std::uint32_t>(bytes);
  std::memcpy(head.data() + 8, &length, sizeof length);
  owned_.push_back(std::move(head));
  out_.push_back({owned_.back(), true});
  pending_ += owned_.back().size();
  for (std::size_t i = 0; i < n; ++i) {
    const PageWanted wanted = page_wanted(frame.payload, i);
    const std::byte* page = facts_.table.page(wanted.segment, wanted.page);
    if (wanted.records == whole_page)
      send({page, g.page_bytes});
    else
      for_records(wanted.records, g, [&](std::size_t at, std::size_t size) { send({page + at, size}); });
  }
  ++counts_.requests;
  counts_.pages += n;
  counts_.bytes += bytes;
}

void ServerSession::attach(const Frame& frame) {
  const auto reader = decode_attach(frame.payload);
  if (!reader) return refuse(Refusal::malformed, "an attach that cannot be read");
  if (!facts_.attach) return refuse(Refusal::no_rdma, "this server offers no RDMA: start it with --rdma, or read with tcp");
  try {
    Attached answer;
    grant_ = facts_.attach(*reader, answer);
    reply(Type::attached, frame.id, encode_attached(answer));
  } catch (const std::exception& error) {
    refuse(Refusal::no_rdma, error.what());
  }
}

void ServerSession::send(View memory) {
  pending_ += memory.size();
  // Pages that follow one another in memory leave as one piece.
  if (!out_.empty() && !out_.back().owned && out_.back().bytes.data() + out_.back().bytes.size() == memory.data())
    out_.back().bytes = {out_.back().bytes.data(), out_.back().bytes.size() + memory.size()};
  else
    out_.push_back({memory, false});
}

void ServerSession::reply(Type type, std::uint32_t id, View payload) {
  owned_.push_back(encode(type, id, payload));
  out_.push_back({owned_.back(), true});
  pending_ += owned_.back().size();
}

void ServerSession::refuse(Refusal code, const std::string& message) {
  if (state_ == State::over) return;
  refusal_ = message;
  reply(Type::refuse, 0, encode_refused({code, message}));
  state_ = State::over;
}

std::size_t ServerSession::pieces(std::span<View> to) const {
  const std::size_t n = std::min(to.size(), out_.size());
  for (std::size_t i = 0; i < n; ++i) to[i] = out_[i].bytes;
  return n;
}

void ServerSession::sent(std::size_t bytes) {
  pending_ -= bytes;
  while (bytes > 0) {
    Piece& front = out_.front();
    const std::size_t n = std::min(bytes, front.bytes.size());
    front.bytes = front.bytes.subspan(n);
    bytes -= n;
    if (!front.bytes.empty()) break;
    if (front.owned) owned_.pop_front();
    out_.pop_front();
  }
}

}  // namespace slacktier

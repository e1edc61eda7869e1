// What a stranger, a server or a reader with the key can send, for libFuzzer: the first byte chooses who it is, the second
// where the bytes are cut in two.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "tier/server_session.hpp"

using namespace slacktier;
using namespace slacktier::protocol;

namespace {

struct Target {
  ServedTable table = ServedTable::make(load_table_spec("engram_v41"), [] {
    StageOptions options;
    options.ranks = 4;
    options.only_ranks = {3};
    options.max_bytes = (1 << 20) + 2 * 8 * 4096;
    return options;
  }());
  Bytes key = Bytes(32, std::byte{1});
  SessionFacts facts{table, key, [] { return std::string("{}"); },
                     [](const Attach& reader, Attached& answer) {
                       static_cast<Attach&>(answer) = reader;
                       answer.memory = {{4096, 8192, 7}};
                       return std::make_unique<RemoteGrant>();
                     }};
};

// All that a session wants to send must be memory that can be read.
void take_all(ServerSession& session) {
  std::size_t taken = 0;
  View pieces[16];
  while (session.pending() > 0 && taken < (std::size_t{1} << 22)) {
    const std::size_t n = session.pieces(pieces);
    if (n == 0) std::abort();
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < n; ++i) {
      unsigned sum = 0;
      for (const std::byte b : pieces[i]) sum += static_cast<unsigned>(b);
      if (sum > 255 * pieces[i].size()) std::abort();
      bytes += pieces[i].size();
    }
    session.sent(bytes);
    taken += bytes;
  }
}

void decode_all(View input) {
  const Parsed parsed = parse_frame(input);
  if (parsed.state == Parsed::State::frame && parsed.bytes > input.size()) std::abort();
  decode_nonce(input);
  if (const auto proof = decode_proof(input); proof && !decode_proof(encode_proof(*proof))) std::abort();
  decode_welcome(input);
  decode_refused(input);
  if (const auto attach = decode_attach(input); attach && encode_attach(*attach).size() != input.size()) std::abort();
  decode_attached(input);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Target target;
  if (size < 2) return 0;
  const View input(reinterpret_cast<const std::byte*>(data + 2), size - 2);
  if (data[0] % 3 == 0) {
    decode_all(input);
    return 0;
  }
  const Nonce own{}, theirs{};
  ServerSession session(target.facts, own);
  if (data[0] % 3 == 1) {
    session.received(encode(Type::hello, 0, theirs));
    const Wanted wanted;
    const Bytes covered = encode_wanted(wanted);
    const View parts[] = {theirs, own, covered};
    session.received(encode(Type::proof, 0, encode_proof({prove(target.key, "reader", parts), wanted})));
    if (session.state() != ServerSession::State::serving) std::abort();
  }
  const std::size_t cut = data[1] % (input.size() + 1);
  session.received(input.first(cut));
  session.received(input.subspan(cut));
  take_all(session);
  return 0;
}

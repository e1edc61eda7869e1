// The protocol's parser and a server's session without sockets: what readers may send, and all else.
#include "tier/protocol.hpp"

#include <cstdint>
#include <cstring>
#include <random>

#include "tests/catch.hpp"
#include "tests/unit/tier/small_table.hpp"
#include "tier/server_session.hpp"

using namespace slacktier;
using namespace slacktier::testing;
using namespace slacktier::protocol;

namespace {

Bytes text_bytes(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// A session of a small table, and what it answers.
struct Bench {
  ScratchFolder folder;
  TableSpec spec = small_table(folder);
  ServedTable table = ServedTable::make(spec, [] {
    StageOptions options;
    options.max_bytes = (1 << 20) + 64 * 4096;
    return options;
  }());
  Bytes key = text_bytes("a key of some length");
  SessionFacts facts{table, key, {}, {}};
  Nonce own{}, theirs{};
  ServerSession session{facts, own};

  Bench() {
    own.fill(std::byte{0});
    theirs.fill(std::byte{7});
  }
  Bytes out() {
    Bytes all;
    std::array<View, 16> pieces;
    while (session.pending() > 0) {
      const std::size_t n = session.pieces(pieces);
      REQUIRE(n > 0);
      std::size_t bytes = 0;
      for (std::size_t i = 0; i < n; ++i) {
        all.insert(all.end(), pieces[i].begin(), pieces[i].end());
        bytes += pieces[i].size();
      }
      session.sent(bytes);
    }
    return all;
  }
  Frame answer(Bytes& bytes) {
    bytes = out();
    const Parsed parsed = parse_frame(bytes);
    REQUIRE(parsed.state == Parsed::State::frame);
    return parsed.frame;
  }
  Bytes proof(const Wanted& wanted) {
    const Bytes covered = encode_wanted(wanted);
    const View parts[] = {theirs, own, covered};
    return encode(Type::proof, 2, encode_proof({prove(key, "reader", parts), wanted}));
  }
  void serve() {
    session.received(encode(Type::hello, 1, theirs));
    session.received(proof({}));
    REQUIRE(session.state() == ServerSession::State::serving);
    out();
  }
  std::string refused(const Bytes& input) {
    session.received(input);
    REQUIRE(session.state() == ServerSession::State::over);
    return session.refusal();
  }
};

Bytes read_request(const std::vector<PageWanted>& wanted) {
  Bytes payload;
  for (const PageWanted& page : wanted) append_page_wanted(payload, page);
  return encode(Type::read, 9, payload);
}

}  // namespace

TEST_CASE("a handshake, byte by byte, then pages and records", "[protocol]") {
  Bench bench;
  Bytes bytes, input = encode(Type::hello, 1, bench.theirs);
  for (const std::byte b : input) bench.session.received({&b, 1});
  REQUIRE(bench.answer(bytes).type == Type::challenge);
  for (const std::byte b : bench.proof({})) bench.session.received({&b, 1});
  const auto welcome = decode_welcome(bench.answer(bytes).payload);
  REQUIRE(welcome);
  CHECK(welcome->image == bench.table.header_text());

  const PageGeometry& g = bench.table.header().geometry;
  bench.session.received(read_request({{1, 3, whole_page}, {0, 5, record_bit(0) | record_bit(1) | record_bit(14)}}));
  const Frame pages = bench.answer(bytes);
  REQUIRE(pages.type == Type::pages);
  REQUIRE(pages.id == 9);
  REQUIRE(pages.payload.size() == 4096 + 3 * 264 + 32);
  CHECK(std::memcmp(pages.payload.data(), bench.table.page(1, 3), 4096) == 0);
  const std::byte* page = bench.table.page(0, 5);
  CHECK(std::memcmp(pages.payload.data() + 4096, page, 2 * g.row_bytes) == 0);
  CHECK(std::memcmp(pages.payload.data() + 4096 + 2 * g.row_bytes, page + 14 * g.row_bytes, g.row_bytes) == 0);
  CHECK(std::memcmp(pages.payload.data() + 4096 + 3 * g.row_bytes, page + 4064, 32) == 0);
  bench.session.received(encode(Type::ping, 4, {}));
  CHECK(bench.answer(bytes).type == Type::pong);
  CHECK(bench.session.counts().pages == 2);
}

TEST_CASE("texts and limits of the messages survive the way there and back", "[protocol]") {
  const Wanted wanted{Purpose::pages, "0123456789abcdef", "generated seed=1", "striped", 4, 77};
  const auto proof = decode_proof(encode_proof({{}, wanted}));
  REQUIRE(proof);
  CHECK(proof->wanted == wanted);
  const auto refused = decode_refused(encode_refused({Refusal::other_table, std::string(5000, 'x')}));
  REQUIRE(refused);
  CHECK(refused->message.size() == most_text);
  CHECK_FALSE(decode_proof(Bytes(31)));
  CHECK_FALSE(decode_nonce(Bytes(33)));
  Bytes longer = encode_proof({{}, wanted});
  longer.push_back(std::byte{0});
  CHECK_FALSE(decode_proof(longer));
}

TEST_CASE("what a session refuses, and says why", "[protocol]") {
  CHECK_THAT(Bench().refused(text_bytes("GET / HTTP/1.1\r\n\r\n")), contains_text("not this protocol"));
  CHECK_THAT(Bench().refused(text_bytes("x")), contains_text("not this protocol"));
  CHECK_THAT(Bench().refused(encode(Type::hello, 1, Nonce{}, 2)), contains_text("version 1") && contains_text("version 2"));
  CHECK_THAT(Bench().refused(encode(Type::read, 1, Bytes(16))), contains_text("out of turn"));
  CHECK_THAT(Bench().refused(encode(Type::hello, 1, Bytes(31))), contains_text("length"));
  {
    Bench bench;
    bench.session.received(encode(Type::hello, 1, bench.theirs));
    CHECK_THAT(bench.refused(encode(Type::hello, 1, bench.theirs)), contains_text("out of turn"));
  }
  {
    Bench bench;
    bench.session.received(encode(Type::hello, 1, bench.theirs));
    const Bytes proof = bench.proof({});
    bench.key.back() ^= std::byte{1};
    CHECK_THAT(bench.refused(proof), contains_text("keys differ"));
  }
  const auto table = [](const Wanted& wanted) {
    Bench bench;
    bench.session.received(encode(Type::hello, 1, bench.theirs));
    return bench.refused(bench.proof(wanted));
  };
  CHECK_THAT(table({Purpose::pages, "0123456789abcdef", "", "", 0, 0}), contains_text("fingerprint"));
  CHECK_THAT(table({Purpose::pages, "", "generated seed=2", "", 0, 0}), contains_text("seed=2"));
  CHECK_THAT(table({Purpose::pages, "", "", "striped", 0, 0}), contains_text("striped"));
  CHECK_THAT(table({Purpose::pages, "", "", "", 4, 0}), contains_text("ranks"));
  CHECK_THAT(table({Purpose::pages, "", "", "", 0, 1}), contains_text("staging"));
  for (const PageWanted& wanted : {PageWanted{2, 0, whole_page}, PageWanted{0, 1 << 20, whole_page}, PageWanted{0, 0, 0},
                                   PageWanted{0, 0, record_bit(15)}}) {
    Bench bench;
    bench.serve();
    bench.refused(read_request({{0, 0, whole_page}, wanted}));
    CHECK(bench.session.counts().pages == 0);
  }
}

TEST_CASE("a reader that asks and never takes is not listened to for ever", "[protocol]") {
  Bench bench;
  bench.serve();
  std::size_t requests = 0;
  for (; bench.session.wants_input() && requests < 10'000; ++requests)
    bench.session.received(read_request(std::vector<PageWanted>(500, {0, 1, whole_page})));
  CHECK(requests < 100);
  CHECK(bench.out().size() > std::size_t{16} << 20);
  CHECK(bench.session.wants_input());
}

TEST_CASE("random and damaged bytes end sessions and nothing else", "[protocol]") {
  Bench good;
  std::mt19937_64 random(5);
  const std::vector<Bytes> frames{encode(Type::hello, 1, good.theirs), good.proof({}),
                                  read_request({{0, 1, whole_page}, {1, 2, 5}}), encode(Type::ping, 1, {}),
                                  encode(Type::metrics, 1, {})};
  for (int i = 0; i < 3000; ++i) {
    ServerSession session(good.facts, good.own);
    const bool handshake = random() % 2 == 0;
    if (handshake) {
      session.received(frames[0]);
      session.received(frames[1]);
    }
    Bytes input;
    for (std::size_t n = 1 + random() % 4; n > 0; --n) {
      const Bytes& frame = frames[random() % frames.size()];
      input.insert(input.end(), frame.begin(), frame.end());
    }
    for (std::size_t n = 1 + random() % 3; n > 0; --n) input[random() % input.size()] = static_cast<std::byte>(random());
    session.received(input);
    std::array<View, 8> pieces;
    while (session.pending() > 0) {
      const std::size_t n = session.pieces(pieces);
      for (std::size_t p = 0; p < n; ++p) {
        // Every piece is memory that may be read.
        volatile std::byte touched = pieces[p].front();
        touched = pieces[p].back();
        (void)touched;
      }
      session.sent(pieces[0].size());
    }
  }
}

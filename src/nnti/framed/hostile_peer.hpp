// SPDX-License-Identifier: BSD-3-Clause
// For tests: a peer that proves the credential, and then says over the network, or on its socket, whatever the test
// likes. Beside it, an honest server and an honest client, which must not be harmed. Each framed transport joins with a
// RawPeer, and a line in hostile_transports().
#pragma once

#include "nnti/conformance/tools_testing.hpp"
#include "nnti/framed/transport.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace nnti::framed {

inline constexpr std::uint64_t kHostileToken = 77;
inline constexpr std::size_t kMemoryBytes = 8 << 20;  ///< more than a network keeps for a peer that does not read
inline constexpr std::uint64_t kLong = 256 << 10;

using test::Bytes;
using test::Outcome;
using test::pattern;
using test::raw;

/// Begins another conversation with the server's bootstrap; the socket of a finished one.
using Bootstrap = std::function<nessie::Fd(std::vector<std::byte> hello)>;

/// The network as it is: sends anything, and keeps what comes.
class RawPeer {
 public:
  virtual ~RawPeer() = default;
  /// An honest greeting, with kHostileToken.
  virtual Bytes hello() = 0;
  /// The server has answered the greeting: reaches it, and sets `token`.
  virtual void meet(std::span<const std::byte> theirs, const Bootstrap &bootstrap) = 0;
  /// Both sides send a frame before the first credits are given.
  virtual bool knocks() const { return false; }
  virtual void send_frame(std::span<const std::byte> bytes) = 0;
  virtual std::size_t max_frame_bytes() const { return std::size_t{2} << 20; }
  virtual void send_chunk(const ChunkHeader &, std::span<const std::byte>) {}
  virtual void progress() = 0;
  /// A gap in its frames is the network's fault.
  virtual bool may_lose_frames() const { return false; }

  std::uint64_t token = 0;  ///< the server's for the connection
  std::vector<Bytes> frames;
  std::vector<ChunkHeader> chunks;
  bool hold_chunks = false;  ///< leaves what is announced where it is
};

/// One transport under attack.
struct HostileTransport {
  std::string name;
  nessie::Config config;
  std::unique_ptr<RawPeer> (*make)() = nullptr;  ///< null: the library is missing; `why`
  Result<std::unique_ptr<nnti::Transport>> (*open)(const TransportOptions &options) = nullptr;
  bool in_chunks = true;     ///< long gets and puts go in chunks
  bool holds_chunks = true;  ///< the peer can leave chunks, and still read frames
  std::string why = {};
};
inline std::ostream &operator<<(std::ostream &out, const HostileTransport &transport) { return out << transport.name; }
/// All of them.
std::vector<HostileTransport> hostile_transports();
struct Witness final : TransportEvents {
  struct Lost {
    nnti::Connection *connection;
    Loss loss;
    Error error;
  };
  void accepted(nnti::Connection &connection) override { connections.push_back(&connection); }
  void message(nnti::Connection &, MessageKind, std::span<const std::byte>) override { ++messages; }
  void lost(nnti::Connection &connection, Loss loss, const Error &error) override {
    losses.push_back({&connection, loss, error});
  }
  std::vector<nnti::Connection *> connections;
  int messages = 0;
  std::vector<Lost> losses;
};

/// The rest of the hostile peer: it greets like an honest one, and counts its frames, unless told otherwise.
struct Hostile {
  explicit Hostile(std::unique_ptr<RawPeer> peer) : raw(std::move(peer)) {}

  void send(FrameHeader header, std::span<const std::byte> body = {}) {
    header.token = raw->token;
    header.size = static_cast<std::uint32_t>(body.size());
    header.sequence = sequence++;
    send_as_it_is(header, body);
  }
  void send_as_it_is(const FrameHeader &header, std::span<const std::byte> body = {}) {
    Bytes bytes(nnti::framed::raw(header).begin(), nnti::framed::raw(header).end());
    bytes.insert(bytes.end(), body.begin(), body.end());
    raw->send_frame(bytes);
  }
  void send(const ChunkHeader &header, std::span<const std::byte> bytes) { raw->send_chunk(header, bytes); }
  /// The last answer to that operation; kNoResult: none yet.
  Code answer_to(std::uint64_t operation) const {
    Code code = Code::kNoResult;
    for (const auto &bytes : raw->frames)
      if (const auto frame = decode_frame(bytes);
          frame && frame->header.type == FrameType::kDone && frame->header.operation == operation)
        code = static_cast<Code>(frame->header.result);
    return code;
  }

  std::unique_ptr<RawPeer> raw;
  std::optional<bootstrap::PageSocket> socket;
  std::uint32_t sequence = 0;
};

inline FrameHeader frame_of(FrameType type, std::uint64_t operation = 0, std::uint16_t credits = 0) {
  FrameHeader header{.type = type, .credits = credits, .operation = operation};
  return header;
}

struct HostilePeer : testing::TestWithParam<HostileTransport> {
  void SetUp() override {
    if (GetParam().make == nullptr) GTEST_SKIP() << GetParam().why;
    auto opened = GetParam().open({credential, config, witness, poller, true, GetParam().name});
    ASSERT_TRUE(opened.ok()) << opened.error().to_string();
    server = std::move(*opened);
    registered = std::move(*server->register_memory({memory, Rights::kReadWrite, -1}));
    only_read = std::move(*server->register_memory({small, Rights::kRemoteRead, -1}));
    connect_bystander();
  }

  // --- an honest peer beside the hostile one ---------------------------------------------------------------------------
  void connect_bystander() {
    auto opened = GetParam().open({credential, config, bystander_witness, poller, false, GetParam().name});
    ASSERT_TRUE(opened.ok()) << opened.error().to_string();
    bystander = std::move(*opened);
    auto connecting = bystander->connect(*nessie::Url::parse(server->url()), Deadline::in(kWatchdog));
    ASSERT_TRUE(connecting.ok());
    std::optional<Result<nnti::Connection *>> outcome;
    ASSERT_TRUE(until([&] { return (outcome = (*connecting)->advance()).has_value(); }));
    ASSERT_TRUE(outcome->ok()) << outcome->error().to_string();
    to_server = **outcome;
    ASSERT_TRUE(until([&] { return witness.connections.size() == 1; }));
  }
  void expect_others_are_served() {
    const auto before = witness.messages;
    ASSERT_TRUE(to_server->try_send(MessageKind::kUser, raw(before)));
    ASSERT_TRUE(until([&] { return witness.messages == before + 1; }));
    Bytes local(kMemoryBytes);
    Outcome got;
    to_server->get(registered->describe(), 0, local, got);
    ASSERT_TRUE(until([&] { return got.times == 1; }));
    ASSERT_TRUE(got.status.ok()) << got.status.error().to_string();
    EXPECT_TRUE(local == memory);
    EXPECT_TRUE(bystander_witness.losses.empty());
  }

  // --- the hostile one -----------------------------------------------------------------------------------------------
  Hostile &greet() { return *(hostile = std::make_unique<Hostile>(GetParam().make())); }
  /// The bootstrap.
  Result<bootstrap::Established> converse(std::vector<std::byte> hello) {
    const auto address = *parse_host_port(nessie::Url::parse(server->url())->address);
    bootstrap::Connector connector(*bootstrap::connect_tcp(address.host, address.port), GetParam().name, credential,
                                   {std::move(hello), {}});
    std::optional<Result<bootstrap::Established>> outcome;
    if (!until([&] { return (outcome = connector.advance()).has_value(); })) return Error{Code::kTimedOut, "watchdog"};
    return std::move(*outcome);
  }
  /// With that greeting, or an honest one. Why the server declined, if it did.
  Status shake_hands(Hostile &peer, std::optional<std::vector<std::byte>> hello = {}) {
    auto outcome = converse(hello ? *hello : peer.raw->hello());
    if (!outcome.ok()) return outcome.error();
    peer.socket.emplace(std::move(outcome->socket));
    peer.raw->meet(outcome->theirs.blob, [this](std::vector<std::byte> another) {
      auto established = converse(std::move(another));
      EXPECT_TRUE(established.ok()) << established.error().to_string();
      return established.ok() ? established->socket.take() : nessie::Fd();
    });
    return {};
  }
  /// All that an honest peer does, and the credits that it gives.
  Hostile &connect(std::uint16_t credits = Connection::kCredits) {
    auto &peer = greet();
    EXPECT_TRUE(shake_hands(peer).ok());
    if (peer.raw->knocks()) {
      peer.send(frame_of(FrameType::kCredit));
      EXPECT_TRUE(until([&] { return !peer.raw->frames.empty(); })) << "the server knocks as well";
    }
    peer.send(frame_of(FrameType::kCredit, 0, credits));
    return peer;
  }
  ChunkHeader put_of(std::uint64_t operation, std::uint64_t offset, std::uint64_t length, std::uint64_t at = 0) {
    return {operation, registered->describe().key, offset, length, at, ChunkType::kPut, 0};
  }
  FrameHeader get_of(std::uint64_t operation, std::uint64_t offset, std::uint64_t length) {
    auto header = frame_of(FrameType::kGet, operation);
    header.key = registered->describe().key;
    header.offset = offset;
    header.length = length;
    return header;
  }

  bool until(const std::function<bool()> &state) {
    return test::until(state, [this] { turn(); });
  }
  void turn() {
    server->progress();
    if (bystander) bystander->progress();
    if (hostile) hostile->raw->progress();
  }
  void expect_lost(Loss loss, Code code) {
    ASSERT_TRUE(until([&] { return !witness.losses.empty(); }));
    ASSERT_EQ(witness.losses.size(), 1u);
    EXPECT_EQ(witness.losses[0].loss, loss);
    EXPECT_EQ(witness.losses[0].error.code, code) << witness.losses[0].error.to_string();
    EXPECT_EQ(witness.losses[0].connection, witness.connections.back());
    EXPECT_TRUE(memory == untouched) << "something was changed";
    expect_others_are_served();
    witness.losses.clear();
  }
  /// How the peer sees its socket end: 0, as that of a process; else the error.
  int how_the_socket_ends(Hostile &peer) {
    int cause = 0;
    EXPECT_TRUE(until([&] {
      const auto page = peer.socket->receive();
      if (!page.ok()) cause = page.error().cause;
      return !page.ok();
    }));
    return cause;
  }
  void expect_given_up() { expect_lost(Loss::kGone, Code::kBadMessage); }
  void expect_still_served(Hostile &peer) {
    const auto before = witness.messages;
    peer.send(frame_of(FrameType::kMessage), raw(before));
    EXPECT_TRUE(until([&] { return witness.messages == before + 1; }));
    EXPECT_TRUE(witness.losses.empty());
  }

  nessie::Credential credential = nessie::Credential::generate();
  const nessie::Config config = GetParam().config;
  Poller poller;
  Witness witness, bystander_witness;
  static inline const Bytes untouched = pattern(kMemoryBytes, 1);
  Bytes memory = untouched, small = pattern(8192, 2);
  std::unique_ptr<nnti::Transport> server, bystander;
  std::unique_ptr<TransportMemory> registered, only_read;
  nnti::Connection *to_server = nullptr;
  std::unique_ptr<Hostile> hostile;
};

/// Where long gets and puts go in chunks.
struct HostileChunks : HostilePeer {};
/// Where a peer can leave chunks that are announced, and read frames all the same.
struct HoldingPeer : HostilePeer {};

}  // namespace nnti::framed

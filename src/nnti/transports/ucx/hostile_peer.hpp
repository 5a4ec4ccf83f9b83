// SPDX-License-Identifier: BSD-3-Clause
// For tests: a peer that proves the credential, and then says over UCX, or on its socket, whatever the test likes. It
// stands on UCX itself, not on our worker, so that every byte of it is the test's. Beside it, an honest server and an
// honest client, which must not be harmed.
#pragma once

#include "nnti/conformance/watchdog_test.hpp"
#include "nnti/transports/ucx/transport.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>

namespace nnti::ucx {

inline constexpr unsigned kFrames = 1, kChunks = 2;  // the active messages' numbers
inline constexpr std::size_t kMemoryBytes = 1 << 20;
inline constexpr std::uint64_t kLong = 256 << 10;

using Bytes = std::vector<std::byte>;

template <class T> std::span<const std::byte> raw(const T &value) { return std::as_bytes(std::span(&value, 1)); }

inline Bytes pattern(std::size_t size_bytes, unsigned seed) {
  Bytes bytes(size_bytes);
  for (std::size_t i = 0; i < size_bytes; ++i) bytes[i] = static_cast<std::byte>((i * 31 + i / 251 + seed) & 0xff);
  return bytes;
}

inline nessie::Config settings() {
  nessie::Config config;
  config.set("nnti.ucx.address", "127.0.0.1");
  config.set("nnti.ucx.tls", "tcp");
  return config;
}

/// UCX as it is: sends anything, and keeps what comes.
class RawUcx {
 public:
  RawUcx() {
    ucp_config_t *ucx_settings = nullptr;
    EXPECT_EQ(library().config_read(nullptr, nullptr, &ucx_settings), UCS_OK);
    library().config_modify(ucx_settings, "TLS", "tcp");
    ucp_params_t parameters{};
    parameters.field_mask = UCP_PARAM_FIELD_FEATURES;
    parameters.features = UCP_FEATURE_AM;
    EXPECT_EQ(library().init_version(UCP_API_MAJOR, UCP_API_MINOR, &parameters, ucx_settings, &context_), UCS_OK);
    library().config_release(ucx_settings);
    ucp_worker_params_t worker{};
    EXPECT_EQ(library().worker_create(context_, &worker, &worker_), UCS_OK);
    take(kFrames, take_frame);
    take(kChunks, take_chunk);
  }
  ~RawUcx() {
    if (endpoint_ != nullptr) {
      ucp_request_param_t parameters{};
      parameters.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
      parameters.flags = UCP_EP_CLOSE_FLAG_FORCE;
      forget(library().ep_close_nbx(endpoint_, &parameters));
    }
    for (int i = 0; i < 1000; ++i) progress();
    library().worker_destroy(worker_);
    library().cleanup(context_);
  }
  RawUcx(const RawUcx &) = delete;
  RawUcx &operator=(const RawUcx &) = delete;

  Bytes address() {
    ucp_address_t *address = nullptr;
    std::size_t size = 0;
    EXPECT_EQ(library().worker_get_address(worker_, &address, &size), UCS_OK);
    const auto *begin = reinterpret_cast<const std::byte *>(address);
    Bytes bytes(begin, begin + size);
    library().worker_release_address(worker_, address);
    return bytes;
  }
  void connect(const Bytes &address) {
    ucp_ep_params_t parameters{};
    parameters.field_mask =
        UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
    parameters.address = reinterpret_cast<const ucp_address_t *>(address.data());
    parameters.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    parameters.err_handler.cb = [](void *, ucp_ep_h, ucs_status_t) {};
    ASSERT_EQ(library().ep_create(worker_, &parameters, &endpoint_), UCS_OK);
  }
  void send(unsigned id, std::span<const std::byte> header, std::span<const std::byte> bytes, std::uint32_t flags = 0) {
    auto &kept = sent_.emplace_back(header.begin(), header.end());
    kept.insert(kept.end(), bytes.begin(), bytes.end());
    ucp_request_param_t parameters{};
    parameters.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    parameters.flags = flags;
    forget(library().am_send_nbx(endpoint_, id, kept.data(), header.size(), kept.data() + header.size(), bytes.size(),
                                 &parameters));
  }
  void progress() { library().worker_progress(worker_); }

  std::vector<Bytes> frames;
  std::vector<ChunkHeader> chunks;
  bool hold_chunks = false;  ///< leaves what is announced where it is

 private:
  void take(unsigned id, ucp_am_recv_callback_t callback) {
    ucp_am_handler_param_t parameters{};
    parameters.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                            UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
    parameters.id = id;
    parameters.flags = UCP_AM_FLAG_WHOLE_MSG;
    parameters.cb = callback;
    parameters.arg = this;
    EXPECT_EQ(library().worker_set_am_recv_handler(worker_, &parameters), UCS_OK);
  }
  /// UCX keeps the request until it is done; what it reads, or fills, is ours for as long as we live.
  static void forget(ucs_status_ptr_t request) {
    if (UCS_PTR_IS_PTR(request)) library().request_free(request);
  }
  static ucs_status_t take_frame(void *self, const void *, std::size_t, void *data, std::size_t size,
                                 const ucp_am_recv_param_t *) {
    const auto *begin = static_cast<const std::byte *>(data);
    static_cast<RawUcx *>(self)->frames.emplace_back(begin, begin + size);
    return UCS_OK;
  }
  static ucs_status_t take_chunk(void *arg, const void *header, std::size_t header_size, void *data, std::size_t size,
                                 const ucp_am_recv_param_t *parameters) {
    auto &self = *static_cast<RawUcx *>(arg);
    ChunkHeader chunk;
    std::memcpy(&chunk, header, std::min(header_size, sizeof chunk));
    self.chunks.push_back(chunk);
    if (!(parameters->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV)) return UCS_OK;
    if (self.hold_chunks) return UCS_INPROGRESS;
    auto &kept = self.sent_.emplace_back(size);
    ucp_request_param_t receive{};
    forget(library().am_recv_data_nbx(self.worker_, data, kept.data(), kept.size(), &receive));
    return UCS_INPROGRESS;
  }

  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  ucp_ep_h endpoint_ = nullptr;
  std::deque<Bytes> sent_;
};

struct Witness final : TransportEvents {
  struct Lost {
    Connection *connection;
    Loss loss;
    Error error;
  };
  void accepted(Connection &connection) override { connections.push_back(&connection); }
  void message(Connection &, MessageKind, std::span<const std::byte>) override { ++messages; }
  void lost(Connection &connection, Loss loss, const Error &error) override {
    losses.push_back({&connection, loss, error});
  }
  std::vector<Connection *> connections;
  int messages = 0;
  std::vector<Lost> losses;
};

struct Outcome final : Completion {
  void on_complete(Status result) override { status = std::move(result), ++times; }
  Status status;
  int times = 0;
};

/// The rest of the hostile peer: it greets like an honest one, and counts its frames, unless told otherwise.
struct Hostile {
  explicit Hostile(Hello mine_now) : mine(std::move(mine_now)) {}

  void send(FrameHeader header, std::span<const std::byte> body = {}) {
    header.token = theirs.token;
    header.size = static_cast<std::uint32_t>(body.size());
    header.sequence = sequence++;
    send_as_it_is(header, body);
  }
  void send_as_it_is(const FrameHeader &header, std::span<const std::byte> body = {}) {
    Bytes bytes(raw(header).begin(), raw(header).end());
    bytes.insert(bytes.end(), body.begin(), body.end());
    ucx.send(kFrames, {}, bytes, UCP_AM_SEND_FLAG_EAGER);
  }
  void send(ChunkHeader header, std::span<const std::byte> bytes) {
    header.token = theirs.token;
    ucx.send(kChunks, raw(header), bytes);
  }
  /// The last answer to that operation; kNoResult: none yet.
  Code answer_to(std::uint64_t operation) const {
    Code code = Code::kNoResult;
    for (const auto &bytes : ucx.frames)
      if (const auto frame = decode_frame(bytes);
          frame && frame->header.type == FrameType::kDone && frame->header.operation == operation)
        code = static_cast<Code>(frame->header.result);
    return code;
  }

  RawUcx ucx;
  Hello mine, theirs;
  std::optional<bootstrap::PageSocket> socket;
  std::uint32_t sequence = 0;
};

inline FrameHeader frame_of(FrameType type, std::uint64_t operation = 0, std::uint16_t credits = 0) {
  FrameHeader header;
  header.type = type;
  header.operation = operation;
  header.credits = credits;
  return header;
}

struct HostileUcxPeer : testing::Test {
  void SetUp() override {
    if (auto loaded = load_library(); !loaded.ok()) GTEST_SKIP() << loaded.error().message;
    auto opened = ucx::open({credential, config, witness, poller, true, "ucx"});
    ASSERT_TRUE(opened.ok()) << opened.error().to_string();
    server = std::move(*opened);
    registered = std::move(*server->register_memory({memory, Rights::kReadWrite, -1}));
    only_read = std::move(*server->register_memory({small, Rights::kRemoteRead, -1}));
    connect_bystander();
  }

  // --- an honest peer beside the hostile one ---------------------------------------------------------------------------
  void connect_bystander() {
    auto opened = ucx::open({credential, config, bystander_witness, poller, false, "ucx"});
    ASSERT_TRUE(opened.ok()) << opened.error().to_string();
    bystander = std::move(*opened);
    auto connecting = bystander->connect(*nessie::Url::parse(server->url()), Deadline::in(kWatchdog));
    ASSERT_TRUE(connecting.ok());
    std::optional<Result<Connection *>> outcome;
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
    EXPECT_EQ(local, memory);
    EXPECT_TRUE(bystander_witness.losses.empty());
  }

  // --- the hostile one -----------------------------------------------------------------------------------------------
  Hostile &greet(std::function<void(Hello &)> change = {}) {
    auto &peer = *(hostile = std::make_unique<Hostile>(Hello{77, {}}));
    peer.mine.address = peer.ucx.address();
    if (change) change(peer.mine);
    return peer;
  }
  /// The bootstrap. Why the server declined, if it did.
  Status shake_hands(Hostile &peer) {
    const auto address = *parse_host_port(nessie::Url::parse(server->url())->address);
    bootstrap::Connector connector(*bootstrap::connect_tcp(address.host, address.port), "ucx", credential,
                                   {encode_hello(peer.mine), {}});
    std::optional<Result<bootstrap::Established>> outcome;
    if (!until([&] { return (outcome = connector.advance()).has_value(); })) return Error{Code::kTimedOut, "watchdog"};
    if (!outcome->ok()) return outcome->error();
    peer.socket.emplace(std::move((*outcome)->socket));
    peer.theirs = std::move(*decode_hello((*outcome)->theirs.blob));
    peer.ucx.connect(peer.theirs.address);
    return {};
  }
  /// All that an honest peer does, and the credits that it gives.
  Hostile &connect(std::uint16_t credits = kCredits) {
    auto &peer = greet();
    EXPECT_TRUE(shake_hands(peer).ok());
    peer.send(frame_of(FrameType::kCredit));
    EXPECT_TRUE(until([&] { return !peer.ucx.frames.empty(); })) << "the server knocks as well";
    peer.send(frame_of(FrameType::kCredit, 0, credits));
    return peer;
  }
  ChunkHeader put_of(std::uint64_t operation, std::uint64_t offset, std::uint64_t length, std::uint64_t at = 0) {
    return {0, operation, registered->describe().key, offset, length, at, ChunkType::kPut, 0};
  }
  FrameHeader get_of(std::uint64_t operation, std::uint64_t offset, std::uint64_t length) {
    auto header = frame_of(FrameType::kGet, operation);
    header.key = registered->describe().key;
    header.offset = offset;
    header.length = length;
    return header;
  }

  bool until(const std::function<bool()> &state) {
    const auto watchdog = Deadline::in(kWatchdog);
    for (; !state(); turn())
      if (watchdog.passed()) return false;
    return true;
  }
  void turn() {
    server->progress();
    if (bystander) bystander->progress();
    if (hostile) hostile->ucx.progress();
  }
  void expect_lost(Loss loss, Code code) {
    ASSERT_TRUE(until([&] { return !witness.losses.empty(); }));
    ASSERT_EQ(witness.losses.size(), 1u);
    EXPECT_EQ(witness.losses[0].loss, loss);
    EXPECT_EQ(witness.losses[0].error.code, code) << witness.losses[0].error.to_string();
    EXPECT_EQ(witness.losses[0].connection, witness.connections.back());
    EXPECT_EQ(memory, pattern(kMemoryBytes, 1)) << "nothing was changed";
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
  nessie::Config config = settings();
  Poller poller;
  Witness witness, bystander_witness;
  Bytes memory = pattern(kMemoryBytes, 1), small = pattern(8192, 2);
  std::unique_ptr<Transport> server, bystander;
  std::unique_ptr<TransportMemory> registered, only_read;
  Connection *to_server = nullptr;
  std::unique_ptr<Hostile> hostile;
};

}  // namespace nnti::ucx

// SPDX-License-Identifier: BSD-3-Clause
// What somebody on the wire sees, and what becomes of what he changes.
#include "nnti/conformance/tools_testing.hpp"
#include "nnti/sealing/transport.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>

namespace nnti::sealing {
namespace {

using test::Bytes;
using test::Outcome;

Bytes bytes_from(std::string_view text) {
  auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

/// What two bare transports send through; the test listens and changes.
struct Wire {
  std::function<void(MessageKind, Bytes &)> on_message = [](MessageKind, Bytes &) {};
  std::function<void(std::span<std::byte>)> on_bulk = [](std::span<std::byte>) {};
  Bytes seen;  ///< everything that passed
};

/// A transport of the crudest kind: one connection, to another of the same process.
class BareTransport final : public Transport, public Connection {
 public:
  BareTransport(Wire &wire, TransportEvents &events) : wire_(wire), events_(events) {}
  void connect_to(BareTransport &other) { other_ = &other; }
  Connection &connection() { return *this; }

  std::string_view name() const override { return "bare"; }
  Reliability reliability() const override { return Reliability::kUntilBroken; }
  std::string url() const override { return "bare://"; }
  Status can_reach(const nessie::Url &) const override { return {}; }
  Result<std::unique_ptr<Connecting>> connect(const nessie::Url &, Deadline) override {
    struct AtOnce final : Connecting {
      explicit AtOnce(BareTransport &of) : transport(of) {}
      std::optional<Result<Connection *>> advance() override { return static_cast<Connection *>(&transport); }
      BareTransport &transport;
    };
    return std::unique_ptr<Connecting>(std::make_unique<AtOnce>(*this));
  }
  Result<std::unique_ptr<TransportMemory>> register_memory(const MemoryRegion &region) override {
    struct Memory final : TransportMemory {
      Memory(BareTransport &of, const MemoryRegion &memory) : transport(of), key(++of.keys_) {
        transport.regions_[key] = memory;
      }
      ~Memory() override { transport.regions_.erase(key); }
      Result<RemoteBuffer> describe_for(Connection &) override { return describe(); }
      RemoteBuffer describe() const override {
        const auto &region = transport.regions_[key];
        return RemoteBuffer{key, 0, region.bytes.size(), 0, 0, region.rights};
      }
      BareTransport &transport;
      std::uint64_t key;
    };
    return std::unique_ptr<TransportMemory>(std::make_unique<Memory>(*this, region));
  }
  std::optional<MemoryRegion> find_memory(const RemoteBuffer &buffer) const override {
    auto found = regions_.find(buffer.key);
    return found == regions_.end() ? std::nullopt : std::optional(found->second);
  }
  std::size_t progress() override {
    std::size_t count = 0;
    for (; !inbox_.empty(); ++count) {
      auto [kind, bytes] = std::move(inbox_.front());
      inbox_.pop_front();
      if (open_) events_.message(*this, kind, bytes);
    }
    return count;
  }
  bool ready() override { return !inbox_.empty(); }
  int wait_fd() const override { return -1; }
  bool arm() override { return true; }
  void disarm(bool) override {}

  Transport &transport() override { return *this; }
  std::string explain() const override { return "bare"; }
  std::size_t max_message_bytes() const override { return 4096; }
  bool try_send(MessageKind kind, std::span<const std::byte> message) override {
    Bytes bytes(message.begin(), message.end());
    wire_.on_message(kind, bytes);
    wire_.seen.insert(wire_.seen.end(), bytes.begin(), bytes.end());
    other_->inbox_.emplace_back(kind, std::move(bytes));
    return true;
  }
  void get(const RemoteBuffer &remote, std::uint64_t offset, std::span<std::byte> local,
           Completion &completion) override {
    std::ranges::copy(other_->regions_.at(remote.key).bytes.subspan(offset, local.size()), local.begin());
    passes(local);
    completion.on_complete({});
  }
  void put(const RemoteBuffer &remote, std::uint64_t offset, std::span<const std::byte> local,
           Completion &completion) override {
    auto target = other_->regions_.at(remote.key).bytes.subspan(offset, local.size());
    std::ranges::copy(local, target.begin());
    passes(target);
    completion.on_complete({});
  }
  void close() override { open_ = false; }
  void replay(MessageKind kind, const Bytes &bytes) { inbox_.emplace_back(kind, bytes); }

 private:
  void passes(std::span<std::byte> bytes) {
    wire_.on_bulk(bytes);
    wire_.seen.insert(wire_.seen.end(), bytes.begin(), bytes.end());
  }
  Wire &wire_;
  TransportEvents &events_;
  BareTransport *other_ = nullptr;
  std::deque<std::pair<MessageKind, Bytes>> inbox_;
  std::map<std::uint64_t, MemoryRegion> regions_;
  std::uint64_t keys_ = 0;
  bool open_ = true;
};

struct Side final : TransportEvents {
  explicit Side(Wire &wire, const nessie::Credential &job) : credential(job) {
    opened = sealing::open({.credential = credential, .config = config, .events = *this, .poller = poller},
                           [&](const TransportOptions &options) -> Result<std::unique_ptr<Transport>> {
                             auto made = std::make_unique<BareTransport>(wire, options.events);
                             bare = made.get();
                             below = &options.events;
                             return std::unique_ptr<Transport>(std::move(made));
                           });
    sealed = opened->get();
  }
  void accepted(Connection &made) override { connection = &made; }
  void message(Connection &, MessageKind, std::span<const std::byte> bytes) override {
    messages.emplace_back(bytes.begin(), bytes.end());
  }
  void lost(Connection &, Loss loss, const Error &error) override { losses.emplace_back(loss, error); }

  nessie::Credential credential;
  nessie::Config config;
  Poller poller;
  BareTransport *bare = nullptr;
  TransportEvents *below = nullptr;
  Result<std::unique_ptr<Transport>> opened = Error{Code::kInternal, ""};
  Transport *sealed = nullptr;
  Connection *connection = nullptr;
  std::vector<Bytes> messages;
  std::vector<std::pair<Loss, Error>> losses;
};

struct Sealing : testing::Test {
  /// Nothing: it does not end.
  std::optional<Result<Connection *>> try_to_connect() {
    client.bare->connect_to(*server.bare);
    server.bare->connect_to(*client.bare);
    server.below->accepted(server.bare->connection());
    auto connecting = client.sealed->connect({"bare", "", {}}, Deadline::never());
    if (!connecting.ok()) return std::nullopt;
    std::optional<Result<Connection *>> outcome;
    for (int i = 0; i < 10 && !outcome; ++i) {
      outcome = (*connecting)->advance();
      turn();
    }
    return outcome;
  }
  void connect() {
    const auto outcome = try_to_connect();
    ASSERT_TRUE(outcome && outcome->ok());
    client.connection = **outcome;
    ASSERT_NE(server.connection, nullptr);
  }
  void turn() {
    for (int i = 0; i < 20; ++i) client.sealed->progress(), server.sealed->progress();
  }
  bool was_seen(const Bytes &text) const {
    return std::search(wire.seen.begin(), wire.seen.end(), text.begin(), text.end()) != wire.seen.end();
  }
  /// Registers `memory` at the server, and describes it to the client.
  RemoteBuffer lend(std::span<std::byte> memory) {
    lent.push_back(std::move(*server.sealed->register_memory({memory, Rights::kReadWrite, -1})));
    return *lent.back()->describe_for(*server.connection);
  }

  nessie::Credential job = nessie::Credential::generate();
  Wire wire;
  Side client{wire, job}, server{wire, job};
  std::vector<std::unique_ptr<TransportMemory>> lent;
};

TEST_F(Sealing, HidesMessagesAndData) {
  connect();
  const auto secret = bytes_from("the temperature of the core is 7 keV");
  ASSERT_TRUE(client.connection->try_send(MessageKind::kUser, secret));
  Bytes memory(300'000), local(300'000);
  std::ranges::copy(secret, memory.begin() + 200'000);
  auto remote = lend(memory);
  Outcome got, put;
  client.connection->get(remote, 0, local, got);
  turn();
  ASSERT_TRUE(got.times == 1 && got.status.ok());
  EXPECT_EQ(local, memory);
  Bytes other = bytes_from("and that of the edge is 200 eV");
  client.connection->put(remote, 5, other, put);
  turn();
  ASSERT_TRUE(put.times == 1 && put.status.ok());
  EXPECT_TRUE(std::ranges::equal(std::span(memory).subspan(5, other.size()), other));
  ASSERT_EQ(server.messages.size(), 1u);
  EXPECT_EQ(server.messages[0], secret);
  EXPECT_GT(wire.seen.size(), 300'000u);
  EXPECT_FALSE(was_seen(secret));
  EXPECT_FALSE(was_seen(other));
}

TEST_F(Sealing, TheSameTextNeverLooksTheSame) {
  connect();
  std::vector<Bytes> records;
  wire.on_message = [&](MessageKind, Bytes &bytes) { records.push_back(bytes); };
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(client.connection->try_send(MessageKind::kUser, Bytes(64)));
  ASSERT_TRUE(server.connection->try_send(MessageKind::kUser, Bytes(64)));
  ASSERT_EQ(records.size(), 4u);
  for (auto &record : records) record.erase(record.begin(), record.begin() + 9);
  std::ranges::sort(records);
  EXPECT_EQ(std::ranges::adjacent_find(records), records.end());
}

struct SealingOfPlace : Sealing, testing::WithParamInterface<std::size_t> {};

TEST_P(SealingOfPlace, AMessageThatWasChangedThereBreaksTheConnectionAndIsNotDelivered) {
  connect();
  wire.on_message = [](MessageKind, Bytes &bytes) { bytes.at(GetParam()) ^= std::byte{1}; };
  ASSERT_TRUE(client.connection->try_send(MessageKind::kUser, bytes_from("hello")));
  turn();
  EXPECT_TRUE(server.messages.empty());
  ASSERT_EQ(server.losses.size(), 1u);
  EXPECT_EQ(server.losses[0].first, Loss::kBroken);
}

// In the number, the kind, the text, the tag.
INSTANTIATE_TEST_SUITE_P(At, SealingOfPlace, testing::Values(0, 7, 8, 9, 13, 14, 29));

TEST_F(Sealing, AMessageThatIsPlayedAgainIsNotDelivered) {
  connect();
  Bytes record;
  wire.on_message = [&](MessageKind, Bytes &bytes) { record = bytes; };
  ASSERT_TRUE(client.connection->try_send(MessageKind::kUser, bytes_from("pay")));
  server.bare->replay(kRecord, record);
  turn();
  EXPECT_EQ(server.messages.size(), 1u);
  EXPECT_EQ(server.losses.size(), 1u);
}

TEST_F(Sealing, DataThatWasChangedEndsTheTransferWithAnErrorAndChangesNothingAtItsOwner) {
  connect();
  Bytes memory(1000, std::byte{7}), local(1000, std::byte{9});
  auto remote = lend(memory);
  wire.on_bulk = [](std::span<std::byte> bytes) { bytes[500] ^= std::byte{1}; };
  Outcome got, put;
  client.connection->get(remote, 0, local, got);
  turn();
  ASSERT_TRUE(got.times == 1);
  EXPECT_EQ(got.status.code(), Code::kIo);
  client.connection->put(remote, 0, local, put);
  turn();
  ASSERT_TRUE(put.times == 1);
  EXPECT_FALSE(put.status.ok());
  EXPECT_EQ(memory, Bytes(1000, std::byte{7}));
}

TEST_F(Sealing, WithoutTheJobsSecretNothingIsUnderstood) {
  server.credential = nessie::Credential::generate();
  connect();
  ASSERT_TRUE(client.connection->try_send(MessageKind::kUser, bytes_from("hello")));
  turn();
  EXPECT_TRUE(server.messages.empty());
  EXPECT_EQ(server.losses.size(), 1u);
}

TEST(SealingKeys, AreAgreedUponByBothAndByNobodyElse) {
  const KeyAgreement ours, theirs, anothers;
  const auto agreed = ours.agree(theirs.public_key());
  ASSERT_TRUE(agreed);
  EXPECT_EQ(agreed, theirs.agree(ours.public_key()));
  EXPECT_NE(agreed, anothers.agree(ours.public_key()));
  EXPECT_FALSE(ours.agree(PublicKey{})) << "of order 1: anybody knows what comes out";
}

/// The credential and all that passed do not open what was recorded.
TEST_F(Sealing, WhatWasRecordedStaysClosedToWhoLearnsTheSecretLater) {
  std::vector<Opening> openings;
  Bytes record;
  wire.on_message = [&](MessageKind kind, Bytes &bytes) {
    if (kind == kOpening) openings.push_back(*decode<Opening>(bytes));
    if (kind == kRecord) record = bytes;
  };
  connect();
  ASSERT_TRUE(client.connection->try_send(MessageKind::kUser, bytes_from("hello")));
  ASSERT_EQ(openings.size(), 2u);
  const auto all = std::span<const std::byte>(record);
  const auto head = all.first(sizeof(std::uint64_t) + 1), body = all.subspan(head.size(), all.size() - kRecordOverhead);
  Tag tag;
  std::memcpy(tag.data(), all.data() + head.size() + body.size(), tag.size());
  Bytes plain(body.size());
  for (const auto &[connecting, accepting] : {std::pair(openings[0], openings[1]), std::pair(openings[1], openings[0])})
    for (const auto &guess : {AgreedSecret{}, connecting.key, accepting.key}) {
      Cipher cipher(job, "seal records of connect", {connecting.salt, accepting.salt, guess});
      EXPECT_FALSE(cipher.open(1, head, body, tag, plain));
    }
}

TEST_F(Sealing, AKeyThatAnybodyKnowsIsRefused) {
  wire.on_message = [&](MessageKind kind, Bytes &bytes) {
    if (kind == kOpening) std::fill_n(bytes.end() - sizeof(PublicKey), sizeof(PublicKey), std::byte{0});
  };
  const auto outcome = try_to_connect();
  ASSERT_TRUE(outcome);
  EXPECT_FALSE(outcome->ok());
  EXPECT_EQ(server.connection, nullptr);
}

TEST_F(Sealing, APeerThatDoesNotSealIsRefusedWithASentence) {
  client.bare->connect_to(*server.bare);
  server.bare->connect_to(*client.bare);
  auto connecting = client.sealed->connect({"bare", "", {}}, Deadline::never());
  ASSERT_TRUE(connecting.ok());
  EXPECT_FALSE((*connecting)->advance());
  client.bare->replay(MessageKind::kUser, bytes_from("plain"));
  client.sealed->progress();
  auto outcome = (*connecting)->advance();
  ASSERT_TRUE(outcome);
  EXPECT_FALSE(outcome->ok());
}

TEST_F(Sealing, ALinkThatBreaksBeforeTheKeysAreThereIsMadeAgainButNotToAPeerThatLeft) {
  client.bare->connect_to(*server.bare);
  server.bare->connect_to(*client.bare);
  auto connecting = client.sealed->connect({"bare", "", {}}, Deadline::never());
  ASSERT_TRUE(connecting.ok());
  EXPECT_FALSE((*connecting)->advance());
  client.below->lost(client.bare->connection(), Loss::kBroken, {Code::kIo, "a cable was pulled"});
  EXPECT_FALSE((*connecting)->advance());
  server.below->accepted(server.bare->connection());
  std::optional<Result<Connection *>> outcome;
  for (int i = 0; i < 10 && !outcome; ++i, turn()) outcome = (*connecting)->advance();
  ASSERT_TRUE(outcome && outcome->ok());

  auto another = client.sealed->connect({"bare", "", {}}, Deadline::never());
  ASSERT_TRUE(another.ok());
  EXPECT_FALSE((*another)->advance());
  client.below->lost(client.bare->connection(), Loss::kGone, {Code::kPeerLost, "the process ended"});
  outcome = (*another)->advance();
  ASSERT_TRUE(outcome);
  EXPECT_FALSE(outcome->ok());
}

TEST_F(Sealing, ManyTransfersPassThroughFewWindows) {
  connect();
  Bytes memory(2'000'000), local(2'000'000);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i * 7 >> 3);
  auto remote = lend(memory);
  std::vector<Outcome> outcomes(20);
  for (std::size_t i = 0; i < outcomes.size(); ++i)
    client.connection->get(remote, i * 100'000, std::span(local).subspan(i * 100'000, 100'000), outcomes[i]);
  turn();
  EXPECT_TRUE(
      std::ranges::all_of(outcomes, [](const Outcome &outcome) { return outcome.times == 1 && outcome.status.ok(); }));
  EXPECT_EQ(local, memory);
}

}  // namespace
}  // namespace nnti::sealing

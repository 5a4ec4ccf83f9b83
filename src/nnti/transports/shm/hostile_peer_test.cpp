// SPDX-License-Identifier: BSD-3-Clause
// A peer that has proved the credential, and then misbehaves in its shared memory or on its socket.
#include "nnti/bootstrap/bootstrap.hpp"
#include "nnti/conformance/tools_testing.hpp"
#include "nnti/transports/shm/shared_queue.hpp"
#include "nnti/transports/shm/table.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <base/url.hpp>

#include <array>
#include <cstring>
#include <functional>
#include <optional>
#include <thread>

namespace nnti::shm {
namespace {

constexpr std::uint64_t kSlots = 64;

struct Witness final : EventSink {
  void on_message(PeerId, std::span<const std::byte>) override {
    ++messages;
    if (answer) answer();
  }
  void on_peer_connected(PeerId peer) override { connected = peer; }
  void on_peer_lost(PeerId, const Error &error) override { lost.push_back(error); }
  int messages = 0;
  PeerId connected;
  std::vector<Error> lost;
  std::function<void()> answer;  ///< to a message
};

/// An honest server, and a client whose every byte the test controls.
struct HostilePeer : testing::Test {
  HostilePeer() {
    EndpointOptions options;
    options.credential = credential;
    options.transports = {"shm"};
    options.config.set("nnti.shm.cma", "off");
    server = std::move(*Endpoint::open(std::move(options), witness));
    auto url = *nessie::Url::parse(server->url());
    socket_name = url.address.substr(url.address.find('/') + 1);
    blob.slots = kSlots;
    blob.probe_address = 1;  // an address that is not ours: to be found out, not followed
  }

  bootstrap::Hello hello() {
    auto bytes = std::as_bytes(std::span(&blob, 1));
    bootstrap::Hello hello{{bytes.begin(), bytes.end()}, {}};
    for (int fd : {table.fd(), doorbell.get()}) hello.descriptors.emplace_back(::dup(fd));
    return hello;
  }
  /// The connection, or why the server declined.
  Result<bootstrap::Established> connect(bootstrap::Hello mine) {
    bootstrap::Connector connector(*bootstrap::connect_unix(socket_name), "shm", credential, std::move(mine));
    auto watchdog = Deadline::in(kWatchdog);
    for (;;) {
      server->progress();
      if (auto outcome = connector.advance()) return settle(std::move(*outcome));
      if (watchdog.passed()) return Error{Code::kTimedOut, "the test's watchdog"};
    }
  }
  /// Tells the server our seat and our memory, as an honest peer would.
  Result<bootstrap::Established> settle(Result<bootstrap::Established> established) {
    if (!established.ok()) return established;
    std::memcpy(&answer, established->theirs.blob.data(), sizeof answer);
    server_table =
        std::move(*map_shared_memory(established->theirs.descriptors[0].get(), sizeof(EndpointTable), Access::kRead));
    if (blob.channel == 0) {
      announce(established->socket, {0, kSeatSlot, our_seat});
      announce(established->socket, {0, kMailboxSlot, 0}, ring.fd.get());
      return established;
    }
    server_queue = std::move(*map_queue(established->theirs.descriptors[2].get(), answer.queue_entries));
    announce(established->socket, {kMinQueueEntries, kQueueSlot, our_seat}, own_queue.fd.get());
    return established;
  }
  /// Connects as an honest peer. False, and the test fails: the server declined.
  bool join() {
    auto outcome = connect(hello());
    EXPECT_TRUE(outcome.ok()) << outcome.error().to_string();
    if (outcome.ok()) established.emplace(std::move(*outcome));
    return outcome.ok();
  }
  bool join_and_be_seen() {
    return join() && until([&] { return witness.connected.value != 0; });
  }
  /// Writes a message into our mailbox.
  void write(Kind kind, std::span<const std::byte> bytes, MessageKind message_kind = MessageKind::kUser) {
    if (!mailbox_writer) mailbox_writer.emplace(mailbox());
    ASSERT_EQ(mailbox_writer->write(kind, bytes, message_kind), Outcome::kSent);
  }
  void announce(bootstrap::PageSocket &socket, const Announcement &announcement, int fd = -1) {
    socket.send(bootstrap::PageType::kTransport, std::as_bytes(std::span(&announcement, 1)),
                std::span<const int>(&fd, fd < 0 ? 0 : 1));
  }
  bool until(const std::function<bool()> &state) {
    return test::until(state, [this] { server->progress(); });
  }
  void expect_given_up() {
    ASSERT_TRUE(until([&] { return !witness.lost.empty(); }));
    EXPECT_EQ(witness.lost.size(), 1u);
    EXPECT_EQ(witness.lost[0].code, Code::kBadMessage) << witness.lost[0].to_string();
  }
  EndpointTable &servers() { return *reinterpret_cast<EndpointTable *>(server_table.base()); }
  /// What we write, and the server reads.
  Mailbox mailbox() {
    return {&servers().lines[answer.seat].consumed, &table.table().lines[our_seat].starves,
            reinterpret_cast<Slot *>(ring.mapping.base()), kSlots};
  }

  const nessie::Credential credential = nessie::Credential::generate();
  Witness witness;
  std::unique_ptr<Endpoint> server;
  std::string socket_name;
  HelloBlob blob;
  OwnTable table = std::move(*OwnTable::make());
  nessie::Fd doorbell{::eventfd(0, EFD_NONBLOCK)};
  SharedMemory ring = std::move(*make_shared_memory("hostile", ring_bytes(kSlots), Peers::kMayOnlyRead));
  SharedMemory own_queue = std::move(*make_shared_memory("hostile", queue_bytes(kMinQueueEntries), Peers::kMayWrite));
  std::uint32_t our_seat = 3;
  HelloBlob answer;
  Mapping server_table, server_queue;
  /// Lets the server map what relayed data pass through, as an honest peer would.
  void announce_bounce(bootstrap::PageSocket &socket) {
    bounce = std::move(*make_shared_memory("bounce", kBounceBytes, Peers::kMayWrite));
    announce(socket, {0, kBounceSlot, 0}, bounce.fd.get());
  }
  SharedMemory bounce;
  std::optional<bootstrap::Established> established;
  std::optional<RingWriter> mailbox_writer;
};

TEST_F(HostilePeer, ThatBehavesIsServed) {
  ASSERT_TRUE(join());
  write(Kind::kMessage, std::as_bytes(std::span("hello")));
  EXPECT_TRUE(until([&] { return witness.messages == 1; }));
}

/// A peer that sleeps, and was sent answers to all its messages.
struct Sleeper : HostilePeer {
  std::uint64_t rings() {
    std::uint64_t count = 0;
    return ::read(doorbell.get(), &count, sizeof count) == sizeof count ? count : 0;
  }
  /// Sends so many messages, and falls asleep. Returns how often it was rung after each answer, and at the next poll.
  std::vector<std::uint64_t> ask(int messages) {
    std::vector<std::uint64_t> rung;
    witness.answer = [&] {
      EXPECT_TRUE(server->send(witness.connected, std::as_bytes(std::span("answer"))).ok());
      rung.push_back(rings());
    };
    const int before = witness.messages;
    table.sleep(false);
    for (int i = 0; i < messages; ++i) write(Kind::kMessage, std::as_bytes(std::span("hello")));
    EXPECT_TRUE(until([&] { return witness.messages == before + messages; }));
    server->progress();
    rung.push_back(rings());
    table.awake();
    return rung;
  }
  void SetUp() override {
    ASSERT_TRUE(join_and_be_seen());
    write(Kind::kMessage, std::as_bytes(std::span("the server has our mailbox")));
    ASSERT_TRUE(until([&] { return witness.messages == 1; }));
  }
};

TEST_F(Sleeper, WhoAskedOnce_IsRungWithTheAnswer) { EXPECT_EQ(ask(1), (std::vector<std::uint64_t>{1, 0})); }

TEST_F(Sleeper, WhoAskedSeveralTimesAtOnce_IsRungWhenAllIsAnswered) {
  for (int i = 0; i < 100; ++i)
    if (ask(4) == std::vector<std::uint64_t>{0, 0, 0, 0, 1}) return;  // nothing kept the server meanwhile
  ADD_FAILURE() << "it was rung earlier each time";
}

TEST_F(Sleeper, WhoAskedLongAgo_IsRungWithWhatIsSentOnItsOwn) {
  for (int i = 0; i < 4; ++i) write(Kind::kMessage, std::as_bytes(std::span("hello")));
  ASSERT_TRUE(until([&] { return witness.messages == 5; }));
  server->progress();
  table.sleep(false);
  EXPECT_TRUE(server->send(witness.connected, std::as_bytes(std::span("news"))).ok());
  EXPECT_EQ(rings(), 1u);
}

TEST_F(Sleeper, IsRungEvenIfTheServerDoesNotPollAnyMore) {
  witness.answer = [&] { (void)server->send(witness.connected, std::as_bytes(std::span("answer"))).ok(); };
  table.sleep(false);
  for (int i = 0; i < 2; ++i) write(Kind::kMessage, std::as_bytes(std::span("hello")));
  server->progress();
  ASSERT_EQ(witness.messages, 3);
  pollfd rung{doorbell.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&rung, 1, std::chrono::milliseconds(kWatchdog).count()), 1);
}

TEST_F(HostilePeer, ThatWritesGarbageIsGivenUp) {
  ASSERT_TRUE(join());
  mailbox().ring[0].header.store(0x1'ffff'ffff);
  expect_given_up();
}

/// An answer to nothing; relayed data, without memory to relay it through; a block that is named by too few bytes.
struct WrongMessage {
  Kind kind;
  std::size_t size_bytes;
  MessageKind message_kind = MessageKind::kUser;
};

class WrongMessages : public HostilePeer, public testing::WithParamInterface<WrongMessage> {};

TEST_P(WrongMessages, AreTheEndOfTheirSender) {
  ASSERT_TRUE(join());
  write(GetParam().kind, std::vector<std::byte>(GetParam().size_bytes), GetParam().message_kind);
  expect_given_up();
}

INSTANTIATE_TEST_SUITE_P(Of, WrongMessages,
                         testing::Values(WrongMessage{Kind::kRelayDone, 4}, WrongMessage{Kind::kRelayGet, 24},
                                         WrongMessage{Kind::kMessage, 55, MessageKind::kEager}));

/// As nnti/README.md says; of an arena that nobody has registered.
struct ForgedNotice {
  std::uint64_t key = 7, address = 0, arena_bytes = 264192, location = 0, number = 1;
  std::uint32_t slot = 5, rights = 1, size_bytes = 1000, block = 0;
};

class ForgedNotices : public HostilePeer, public testing::WithParamInterface<ForgedNotice> {};

TEST_P(ForgedNotices, AreTheEndOfTheirSender) {
  ASSERT_TRUE(join());
  const auto notice = GetParam();
  write(Kind::kMessage, std::as_bytes(std::span(&notice, 1)), MessageKind::kEager);
  expect_given_up();
  EXPECT_EQ(witness.messages, 0);
}

INSTANTIATE_TEST_SUITE_P(Of, ForgedNotices,
                         testing::Values(ForgedNotice{}, ForgedNotice{.block = ~0u}, ForgedNotice{.slot = ~0u},
                                         ForgedNotice{.arena_bytes = 0}, ForgedNotice{.arena_bytes = ~0ull},
                                         ForgedNotice{.size_bytes = 8193}, ForgedNotice{.size_bytes = ~0u}));

TEST_F(HostilePeer, ThatSendsFragmentsWithoutEndIsGivenUp) {
  ASSERT_TRUE(join());
  mailbox_writer.emplace(mailbox());
  for (int i = 0; i < 1000 && witness.lost.empty(); ++i) {
    (void)mailbox_writer->write(Kind::kMessage, std::vector<std::byte>(500), MessageKind::kFragment);
    server->progress();
  }
  expect_given_up();
  EXPECT_EQ(witness.messages, 0);
}

TEST_F(HostilePeer, ThatAsksForMoreThanTheBounceBufferHoldsIsGivenUp) {
  ASSERT_TRUE(join());
  announce_bounce(established->socket);
  write(Kind::kRelayGet, std::vector<std::byte>(24, std::byte{0xff}));
  expect_given_up();
}

TEST_F(HostilePeer, ThatClaimsToHaveReadTheFutureIsGivenUp) {
  ASSERT_TRUE(join_and_be_seen());
  table.table().lines[our_seat].consumed.store(1'000'000);
  for (int i = 0; i < 2000 && witness.lost.empty(); ++i) {
    (void)server->send(witness.connected, std::vector<std::byte>(100)).ok();
    server->progress();
  }
  expect_given_up();
}

TEST_F(HostilePeer, ThatSendsAWrongPageIsGivenUp) {
  ASSERT_TRUE(join());
  established->socket.send(bootstrap::PageType::kHello, {});
  expect_given_up();
}

TEST_F(HostilePeer, ThatAnnouncesMemoryItCanShrinkIsNotMapped) {
  ASSERT_TRUE(join_and_be_seen());
  nessie::Fd unsealed(::memfd_create("unsealed", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(unsealed.get(), 4096), 0);
  std::vector<std::byte> memory(4096);
  auto remote = table.add({memory, Rights::kReadWrite, unsealed.get()});
  ASSERT_TRUE(remote.ok());
  announce(established->socket, {remote->key, remote->slot, 0}, unsealed.get());
  ASSERT_EQ(::ftruncate(unsealed.get(), 0), 0);
  // Were it mapped, this would be a SIGBUS; it is relayed instead, and stays pending until the peer is gone.
  test::Outcome completion;
  std::vector<std::byte> local(100);
  server->get(witness.connected, *remote, 0, local, completion);
  EXPECT_EQ(completion.times, 0);
  established->socket = bootstrap::PageSocket(nessie::Fd());
  ASSERT_TRUE(until([&] { return completion.times == 1; }));
  EXPECT_EQ(completion.status.code(), Code::kPeerLost);
}

TEST_F(HostilePeer, WithAHelloOfAnotherShapeIsDeclined) {
  auto wrong = hello();
  wrong.blob.pop_back();
  EXPECT_FALSE(connect(std::move(wrong)).ok());
  auto few = hello();
  few.descriptors.pop_back();
  EXPECT_FALSE(connect(std::move(few)).ok());
  blob.slots = 63;
  EXPECT_EQ(connect(hello()).code(), Code::kRefused);
  blob.layout_version = 99;
  EXPECT_EQ(connect(hello()).code(), Code::kUnsupported);
}

TEST_F(HostilePeer, WithADoorbellThatIsNoneIsDeclined) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  ::close(pipe[0]);  // whoever writes to the other end is killed
  auto wrong = hello();
  wrong.descriptors[1] = nessie::Fd(pipe[1]);
  EXPECT_EQ(connect(std::move(wrong)).code(), Code::kRefused);
  wrong = hello();
  wrong.descriptors[1] = nessie::Fd(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  EXPECT_EQ(connect(std::move(wrong)).code(), Code::kRefused);
  EXPECT_TRUE(connect(hello()).ok());
}

TEST_F(HostilePeer, WithAMailboxThatIsTooSmallIsGivenUp) {
  ring = std::move(*make_shared_memory("small", 8, Peers::kMayWrite));
  blob.slots = 128;
  ASSERT_TRUE(join());
  expect_given_up();
}

TEST_F(HostilePeer, ThatTakesTwoSeatsIsGivenUp) {
  ASSERT_TRUE(join());
  announce(established->socket, {0, kSeatSlot, our_seat + 1});
  expect_given_up();
}

TEST_F(HostilePeer, WhoseSeatIsNoneIsGivenUp) {
  our_seat = kSeats;
  ASSERT_TRUE(join());
  expect_given_up();
}

TEST_F(HostilePeer, ThatAsksForAnUnknownChannelIsDeclined) {
  blob.channel = 2;
  EXPECT_EQ(connect(hello()).code(), Code::kRefused);
}

// --- in the queue that it shares with others --------------------------------------------------------------------------

/// The same with a shared queue, and an honest peer beside it.
struct HostileSharer : HostilePeer {
  HostileSharer() { blob.channel = 1; }
  Queue queue() { return queue_at(server_queue.base(), answer.queue_entries, servers()); }
  QueueWriter writer() { return QueueWriter(queue(), answer.seat, &table.table().lines[our_seat].starves); }
  void connect_bystander() {
    EndpointOptions options;
    options.credential = credential;
    options.config.set("nnti.channel", "shared-queue");
    options.transports = {"shm"};
    options.listen = false;
    bystander = std::move(*Endpoint::open(std::move(options), bystander_witness));
    std::thread connecting([&] { ASSERT_TRUE(bystander->connect(server->url(), Deadline::in(kWatchdog)).ok()); });
    EXPECT_TRUE(until([&] { return witness.connected.value != 0; }));
    connecting.join();
  }
  Witness bystander_witness;
  std::unique_ptr<Endpoint> bystander;
};

TEST_F(HostileSharer, ThatBehavesIsServed) {
  ASSERT_TRUE(join());
  auto out = writer();
  for (int i = 0; i < 5000; ++i) {
    ASSERT_NE(out.write(Kind::kMessage, std::as_bytes(std::span("hello"))), Outcome::kBroken);
    server->progress();
  }
  EXPECT_GT(witness.messages, 1000);
  EXPECT_TRUE(witness.lost.empty());
}

TEST_F(HostileSharer, ThatPublishesWhatIsNoMessageIsGivenUpAlone) {
  connect_bystander();
  ASSERT_TRUE(join());
  auto out = writer();
  std::uint64_t number = 0;
  ASSERT_EQ(out.claim(number), Outcome::kSent);
  EntryPlace::of(queue(), number).header = 0xffff;
  out.publish(number);
  expect_given_up();
  ASSERT_TRUE(bystander->send(PeerId{1}, std::as_bytes(std::span("still here"))).ok());
  EXPECT_TRUE(until([&] { return witness.messages == 1; }));
}

TEST_F(HostileSharer, ThatWritesAnImpossibleStateEndsTheConnectionsOfTheQueueAndNoMore) {
  for (std::uint64_t state :
       {EntryState::make(2, 0, EntryState::kPublished), EntryState::make(1, 5000, EntryState::kClaimed),
        EntryState::make(1, 5000, EntryState::kPublished), EntryState::make(1, 0, 3), EntryState::make(1, 0, 0)}) {
    witness = Witness();
    connect_bystander();
    ASSERT_TRUE(join());
    EntryPlace::of(queue(), 0).state.store(state);
    ASSERT_TRUE(until([&] { return witness.lost.size() == 2; })) << state;
    EXPECT_EQ(witness.lost[0].code, Code::kBadMessage);
    EXPECT_EQ(witness.lost[1].code, Code::kBadMessage);
  }
  witness = Witness();
  connect_bystander();  // with another queue
  ASSERT_TRUE(bystander->send(PeerId{1}, std::as_bytes(std::span("again"))).ok());
  EXPECT_TRUE(until([&] { return witness.messages == 1; }));
}

TEST_F(HostileSharer, ThatLiesAboutTheTailMisleadsNobody) {
  connect_bystander();
  ASSERT_TRUE(join());
  for (std::uint64_t hint : {1ull, 7ull, 1000ull, 1'000'000ull, ~0ull}) {
    queue().control->tail_hint.store(hint);
    auto before = witness.messages;
    ASSERT_TRUE(bystander->send(PeerId{1}, std::as_bytes(std::span("x"))).ok());
    auto out = writer();
    ASSERT_EQ(out.write(Kind::kMessage, std::as_bytes(std::span("y"))), Outcome::kSent);
    ASSERT_TRUE(until([&] { return witness.messages == before + 2; })) << hint;
  }
}

TEST_F(HostileSharer, ThatClaimsAnEntryAndLeavesIsSkipped) {
  connect_bystander();
  ASSERT_TRUE(join());
  auto out = writer();
  std::uint64_t number = 0;
  ASSERT_EQ(out.write(Kind::kMessage, std::as_bytes(std::span("before"))), Outcome::kSent);
  ASSERT_EQ(out.claim(number), Outcome::kSent);
  ASSERT_TRUE(bystander->send(PeerId{1}, std::as_bytes(std::span("behind it"))).ok());
  ASSERT_TRUE(until([&] { return witness.messages == 1; }));
  for (int i = 0; i < 1000; ++i) server->progress();
  EXPECT_EQ(witness.messages, 1) << "what comes after the claimed entry waits, as its writer lives";
  established->socket = bootstrap::PageSocket(nessie::Fd());
  ASSERT_TRUE(until([&] { return witness.messages == 2 && witness.lost.size() == 1; }));
  EXPECT_EQ(witness.lost[0].code, Code::kPeerLost);
}

TEST_F(HostileSharer, WhoseConnectionWasGivenUpWhileItWritesDisturbsNobody) {
  connect_bystander();
  auto to_bystander = witness.connected;
  witness.connected = {};
  ASSERT_TRUE(join_and_be_seen());
  auto out = writer();
  std::uint64_t number = 0;
  ASSERT_EQ(out.claim(number), Outcome::kSent);
  server->disconnect(witness.connected);
  for (int i = 0; i < 1000; ++i) server->progress();
  ASSERT_TRUE(bystander->send(PeerId{1}, std::as_bytes(std::span("x"))).ok());
  for (int i = 0; i < 1000; ++i) server->progress();
  EXPECT_EQ(witness.messages, 0) << "the entry is its writer's until it publishes, or is gone";
  out.publish(number);
  EXPECT_TRUE(until([&] { return witness.messages == 1; }));
  EXPECT_TRUE(server->send(to_bystander, std::as_bytes(std::span("x"))).ok());
}

TEST_F(HostileSharer, WithAQueueOfAnImpossibleSizeIsGivenUp) {
  own_queue = std::move(*make_shared_memory("small", 64, Peers::kMayWrite));
  ASSERT_TRUE(join());
  own_queue = std::move(*make_shared_memory("tiny", 8, Peers::kMayWrite));
  announce(established->socket, {1ull << 40, kQueueSlot, our_seat}, own_queue.fd.get());
  expect_given_up();
}

}  // namespace
}  // namespace nnti::shm

// SPDX-License-Identifier: BSD-3-Clause
// A peer that has proved the credential, and then misbehaves in its shared memory or on its socket.
#include "nnti/bootstrap.hpp"
#include "nnti/transports/shm/ring.hpp"
#include "nnti/transports/shm/table.hpp"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <base/url.hpp>

#include <cstring>

namespace nnti::shm {
namespace {

constexpr auto kWatchdog = std::chrono::seconds(60);
constexpr std::uint64_t kSlots = 64;

struct Witness final : EventSink {
  void on_message(PeerId, std::span<const std::byte>) override { ++messages; }
  void on_peer_connected(PeerId peer) override { connected = peer; }
  void on_peer_lost(PeerId, const Error &error) override { lost.push_back(error); }
  int messages = 0;
  PeerId connected;
  std::vector<Error> lost;
};

struct IgnoredCompletion final : Completion {
  void on_complete(Status result) override { status = std::move(result), done = true; }
  Status status;
  bool done = false;
};

/// An honest server, and a client whose every byte the test controls.
struct HostilePeer : testing::Test {
  HostilePeer() {
    EndpointOptions options;
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
    for (int fd : {table.fd(), doorbell.get(), segment.fd.get()}) hello.descriptors.emplace_back(::dup(fd));
    return hello;
  }
  /// The connection, or why the server declined.
  Result<bootstrap::Established> connect(bootstrap::Hello mine) {
    bootstrap::Connector connector(*bootstrap::connect_unix(socket_name), "shm", credential, std::move(mine));
    auto watchdog = Deadline::in(kWatchdog);
    for (;;) {
      server->progress();
      if (auto outcome = connector.advance()) return std::move(*outcome);
      if (watchdog.passed()) return Error{Code::kTimedOut, "the test's watchdog"};
    }
  }
  bool until(const std::function<bool()> &state) {
    auto watchdog = Deadline::in(kWatchdog);
    while (!state() && !watchdog.passed()) server->progress();
    return state();
  }
  void expect_given_up() {
    ASSERT_TRUE(until([&] { return !witness.lost.empty(); }));
    EXPECT_EQ(witness.lost.size(), 1u);
    EXPECT_EQ(witness.lost[0].code, Code::kBadMessage) << witness.lost[0].to_string();
  }
  Mailbox mailbox(int side) { return mailbox_at(segment.mapping.base(), side, kSlots); }

  nessie::Credential credential;
  Witness witness;
  std::unique_ptr<Endpoint> server;
  std::string socket_name;
  HelloBlob blob;
  OwnTable table = std::move(*OwnTable::make());
  Fd doorbell{::eventfd(0, EFD_NONBLOCK)};
  SharedMemory segment = std::move(*make_shared_memory("hostile", segment_bytes(kSlots), Peers::kMayWrite));
  /// Lets the server map what relayed data pass through, as an honest peer would.
  void announce_bounce(bootstrap::PageSocket &socket) {
    bounce = std::move(*make_shared_memory("bounce", kBounceBytes, Peers::kMayWrite));
    const std::array<std::uint64_t, 2> announcement{0, 0xffffffff};
    int fd = bounce.fd.get();
    socket.send(bootstrap::PageType::kTransport, std::as_bytes(std::span(announcement)), std::span(&fd, 1));
  }
  SharedMemory bounce;
};

TEST_F(HostilePeer, ThatBehavesIsServed) {
  auto established = connect(hello());
  ASSERT_TRUE(established.ok()) << established.error().to_string();
  RingWriter writer(mailbox(0));
  ASSERT_EQ(writer.write(Kind::kMessage, std::as_bytes(std::span("hello"))), RingWriter::Outcome::kSent);
  EXPECT_TRUE(until([&] { return witness.messages == 1; }));
}

TEST_F(HostilePeer, ThatWritesGarbageIsGivenUp) {
  auto established = connect(hello());
  ASSERT_TRUE(established.ok());
  mailbox(0).ring[0].header.store(0x1'ffff'ffff);
  expect_given_up();
}

TEST_F(HostilePeer, ThatAnswersWhatNobodyAskedIsGivenUp) {
  auto established = connect(hello());
  ASSERT_TRUE(established.ok());
  RingWriter writer(mailbox(0));
  ASSERT_EQ(writer.write(Kind::kRelayDone, std::vector<std::byte>(4)), RingWriter::Outcome::kSent);
  expect_given_up();
}

TEST_F(HostilePeer, ThatAsksForRelayedDataWithoutSharingMemoryIsGivenUp) {
  auto established = connect(hello());
  ASSERT_TRUE(established.ok());
  RingWriter writer(mailbox(0));
  ASSERT_EQ(writer.write(Kind::kRelayGet, std::vector<std::byte>(24)), RingWriter::Outcome::kSent);
  expect_given_up();
}

TEST_F(HostilePeer, ThatNamesABlockThatIsNotThereIsGivenUp) {
  auto established = connect(hello());
  ASSERT_TRUE(established.ok());
  RingWriter writer(mailbox(0));
  ASSERT_EQ(writer.write(Kind::kMessage, std::vector<std::byte>(64), MessageKind::kEager), RingWriter::Outcome::kSent);
  expect_given_up();
}

TEST_F(HostilePeer, ThatSendsFragmentsWithoutEndIsGivenUp) {
  auto established = connect(hello());
  ASSERT_TRUE(established.ok());
  RingWriter writer(mailbox(0));
  for (int i = 0; i < 1000 && witness.lost.empty(); ++i) {
    (void)writer.write(Kind::kMessage, std::vector<std::byte>(500), MessageKind::kFragment);
    server->progress();
  }
  expect_given_up();
  EXPECT_EQ(witness.messages, 0);
}

TEST_F(HostilePeer, ThatAsksForMoreThanTheBounceBufferHoldsIsGivenUp) {
  auto established = connect(hello());
  ASSERT_TRUE(established.ok());
  announce_bounce(established->socket);
  RingWriter writer(mailbox(0));
  ASSERT_EQ(writer.write(Kind::kRelayGet, std::vector<std::byte>(24, std::byte{0xff})), RingWriter::Outcome::kSent);
  expect_given_up();
}

TEST_F(HostilePeer, ThatClaimsToHaveReadTheFutureIsGivenUp) {
  auto established = connect(hello());
  ASSERT_TRUE(established.ok() && until([&] { return witness.connected.value != 0; }));
  mailbox(1).control->consumed.store(1'000'000);
  for (int i = 0; i < 2000 && witness.lost.empty(); ++i) {
    (void)server->send(witness.connected, std::vector<std::byte>(100)).ok();
    server->progress();
  }
  expect_given_up();
}

TEST_F(HostilePeer, ThatSendsAWrongPageIsGivenUp) {
  auto established = connect(hello());
  ASSERT_TRUE(established.ok());
  established->socket.send(bootstrap::PageType::kHello, {});
  expect_given_up();
}

TEST_F(HostilePeer, ThatAnnouncesMemoryItCanShrinkIsNotMapped) {
  auto established = connect(hello());
  ASSERT_TRUE(established.ok() && until([&] { return witness.connected.value != 0; }));
  Fd unsealed(::memfd_create("unsealed", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(unsealed.get(), 4096), 0);
  std::vector<std::byte> memory(4096);
  auto remote = table.add({memory, Rights::kReadWrite, unsealed.get()});
  ASSERT_TRUE(remote.ok());
  struct {
    std::uint64_t key;
    std::uint32_t slot, zero;
  } announcement{remote->key, remote->slot, 0};
  int fd = unsealed.get();
  established->socket.send(bootstrap::PageType::kTransport, std::as_bytes(std::span(&announcement, 1)),
                           std::span(&fd, 1));
  ASSERT_EQ(::ftruncate(unsealed.get(), 0), 0);
  // Were it mapped, this would be a SIGBUS; it is relayed instead, and stays pending until the peer is gone.
  IgnoredCompletion completion;
  std::vector<std::byte> local(100);
  server->get(witness.connected, *remote, 0, local, completion);
  EXPECT_FALSE(completion.done);
  established->socket = bootstrap::PageSocket(Fd());
  ASSERT_TRUE(until([&] { return completion.done; }));
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

TEST_F(HostilePeer, WithASegmentThatIsTooSmallIsDeclined) {
  segment = std::move(*make_shared_memory("small", 4096, Peers::kMayWrite));
  EXPECT_FALSE(connect(hello()).ok());
}

}  // namespace
}  // namespace nnti::shm

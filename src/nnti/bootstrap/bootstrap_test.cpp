// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/bootstrap/bootstrap.hpp"
#include "nnti/conformance/tools_testing.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>

namespace nnti::bootstrap {
namespace {

using nessie::Code;
using namespace std::chrono_literals;

struct Server {
  explicit Server(const Credential &credential, Listener::Limits limits = {}, const Status &decline = {},
                  nessie::Fd listening = {})
      : name(fmt::format("nessie-test-{:x}", nessie::random_u64())),
        listener(
            listening ? std::move(listening) : *listen_unix(name), "test", credential,
            [this, decline](int, Hello &theirs) -> Result<Hello> {
              heard = theirs.blob;
              descriptors = theirs.descriptors.size();
              if (!decline.ok()) return decline.error();
              return Hello{{std::byte{42}}, {}};
            },
            [this](Established established) { accepted.push_back(std::move(established)); }, limits) {}
  std::string name;
  std::vector<std::byte> heard;
  std::size_t descriptors = 0;
  std::vector<Established> accepted;
  Listener listener;
};

std::optional<Result<Established>> shake(Server &server, Connector &connector) {
  auto watchdog = Deadline::in(kWatchdog);
  while (!watchdog.passed()) {
    server.listener.progress();
    if (auto outcome = connector.advance()) return outcome;
  }
  return std::nullopt;
}

bool until(Server &server, const std::function<bool()> &state) {
  auto watchdog = Deadline::in(kWatchdog);
  while (!state() && !watchdog.passed()) server.listener.progress();
  return state();
}

TEST(Bootstrap, ExchangesHellosAndDescriptors) {
  Credential credential = Credential::generate();
  Server server(credential);
  Hello hello{std::vector<std::byte>(5000, std::byte{7}), {}};
  hello.descriptors.emplace_back(::eventfd(0, EFD_CLOEXEC));
  Connector connector(*connect_unix(server.name), "test", credential, std::move(hello));
  auto outcome = shake(server, connector);
  ASSERT_TRUE(outcome && outcome->ok());
  EXPECT_EQ((**outcome).theirs.blob, std::vector<std::byte>{std::byte{42}});
  ASSERT_EQ(server.accepted.size(), 1u);
  EXPECT_EQ(server.heard.size(), 5000u);
  EXPECT_EQ(server.descriptors, 1u);
}

TEST(Bootstrap, WorksOverTcp) {
  auto credential = Credential::generate();
  auto listening = listen_tcp("127.0.0.1", 0);
  ASSERT_TRUE(listening.ok());
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ASSERT_EQ(::getsockname(listening->get(), reinterpret_cast<sockaddr *>(&address), &size), 0);
  Server server(credential, {}, {}, std::move(*listening));
  Connector connector(*connect_tcp("127.0.0.1", ntohs(address.sin_port)), "test", credential, {});
  auto outcome = shake(server, connector);
  EXPECT_TRUE(outcome && outcome->ok());
}

/// While it lives, this process can open nothing more.
class NoMoreDescriptors {
 public:
  NoMoreDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const nessie::Fd next(::dup(0));
    const rlimit few{static_cast<rlim_t>(next.get()), before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &few);
  }
  ~NoMoreDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  NoMoreDescriptors(const NoMoreDescriptors &) = delete;

 private:
  rlimit before_{};
};

TEST(Bootstrap, WhereNoDescriptorsAreLeft_PagesComeWithout) {
  std::array<int, 2> pair{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair.data()), 0);
  PageSocket sender{nessie::Fd(pair[0])}, receiver{nessie::Fd(pair[1])};
  const nessie::Fd one(::eventfd(0, EFD_CLOEXEC)), two(::eventfd(0, EFD_CLOEXEC));
  const std::array<int, 2> both{one.get(), two.get()};
  const std::vector<std::byte> body(10);
  const auto receive = [&]() -> std::vector<nessie::Fd> {
    auto page = receiver.receive();
    EXPECT_TRUE(page.ok() && *page);
    return page.ok() && *page ? std::move((**page).descriptors) : std::vector<nessie::Fd>();
  };
  {
    const NoMoreDescriptors none;
    sender.send(PageType::kTransport, body, both);  // it needs none of its own to be sent at once
    const auto received = receive();
    ASSERT_EQ(received.size(), 2u);
    EXPECT_FALSE(received[0].valid() || received[1].valid());
  }
  sender.send(PageType::kTransport, body);
  sender.send(PageType::kTransport, body, both);
  EXPECT_TRUE(receive().empty());
  const auto received = receive();
  ASSERT_EQ(received.size(), 2u);
  EXPECT_TRUE(received[0].valid() && received[1].valid()) << "what came too few before is not taken from these";
}

TEST(Bootstrap, WhereNoDescriptorsAreLeft_PagesThatHaveToWaitGoWithout) {
  std::array<int, 2> pair{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair.data()), 0);
  PageSocket sender{nessie::Fd(pair[0])}, receiver{nessie::Fd(pair[1])};
  const nessie::Fd one(::eventfd(0, EFD_CLOEXEC));
  const int descriptor = one.get();
  const std::vector<std::byte> body(4000);
  std::size_t sent = 0;
  for (; !sender.has_unsent(); ++sent) sender.send(PageType::kTransport, body);
  {
    const NoMoreDescriptors none;
    sender.send(PageType::kTransport, body, {&descriptor, 1});
  }
  sender.send(PageType::kTransport, body, {&descriptor, 1});
  std::vector<std::size_t> counts;
  for (std::size_t i = 0; i < 10 * (sent + 2) && counts.size() < sent + 2; ++i) {
    EXPECT_TRUE(sender.flush().ok());
    auto page = receiver.receive();
    ASSERT_TRUE(page.ok());
    if (*page) counts.push_back((**page).descriptors.size());
  }
  ASSERT_EQ(counts.size(), sent + 2);
  EXPECT_EQ(counts[sent], 0u);
  EXPECT_EQ(counts[sent + 1], 1u);
}

TEST(Bootstrap, TcpWantsANumericAddress) { EXPECT_EQ(connect_tcp("localhost", 1).code(), Code::kInvalidArgument); }

TEST(Bootstrap, RefusesAnotherCredential) {
  Credential ours = Credential::generate(), theirs = Credential::generate();
  Server server(ours);
  Connector connector(*connect_unix(server.name), "test", theirs, {});
  auto outcome = shake(server, connector);
  ASSERT_TRUE(outcome && !outcome->ok());
  EXPECT_EQ(outcome->code(), Code::kRefused);
  EXPECT_TRUE(server.accepted.empty());
}

/// Speaks the protocol by hand, with a proof that it cannot know.
TEST(Bootstrap, RefusesAWrongProofOfTheConnectingSide) {
  Server server(Credential::generate());
  PageSocket socket(*connect_unix(server.name));
  std::vector<std::byte> hello = {std::byte{0}, std::byte{1}, std::byte{4}};
  for (char c : std::string("test")) hello.push_back(static_cast<std::byte>(c));
  hello.resize(hello.size() + 16);
  socket.send(PageType::kHello, hello);
  socket.send(PageType::kProof, std::vector<std::byte>(32));
  std::optional<Page> refusal;
  ASSERT_TRUE(until(server, [&] {
    auto page = socket.receive();
    if (page.ok() && *page && (**page).type == PageType::kRefusal) refusal = std::move(**page);
    return refusal.has_value();
  }));
  EXPECT_TRUE(server.accepted.empty());
  EXPECT_TRUE(server.heard.empty());
}

TEST(Bootstrap, WhereOneSideSeals_TheSettingIsNamed) {
  Credential credential;
  Server server(credential);
  Connector connector(*connect_unix(server.name), protocol_name("test", true), credential, {});
  auto outcome = shake(server, connector);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->code(), Code::kUnsupported);
  EXPECT_NE(outcome->error().message.find("set nnti.encrypt alike on both sides"), std::string::npos)
      << outcome->error().message;
}

TEST(Bootstrap, RefusesAnotherTransportAndAnotherVersion) {
  Credential credential;
  Server server(credential);
  Connector connector(*connect_unix(server.name), "other", credential, {});
  auto outcome = shake(server, connector);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->code(), Code::kUnsupported);

  PageSocket later(*connect_unix(server.name));
  later.send(PageType::kHello, std::vector<std::byte>(30, std::byte{9}));
  std::optional<Page> refusal;
  ASSERT_TRUE(until(server, [&] {
    auto page = later.receive();
    if (page.ok() && *page) refusal = std::move(**page);
    return refusal.has_value();
  }));
  EXPECT_EQ(refusal->type, PageType::kRefusal);
}

TEST(Bootstrap, PassesOnWhyTheTransportDeclines) {
  Credential credential;
  Server server(credential, {}, Error{Code::kUnsupported, "another layout"});
  Connector connector(*connect_unix(server.name), "test", credential, {});
  auto outcome = shake(server, connector);
  ASSERT_TRUE(outcome && !outcome->ok());
  EXPECT_EQ(outcome->error().message, "another layout");
}

TEST(Bootstrap, AStrangerWhoSaysNothingIsDroppedAndDelaysNobody) {
  Credential credential;
  Server server(credential, {.half_open = 256, .handshake = 20ms});
  auto silent = connect_unix(server.name);
  ASSERT_TRUE(silent.ok());
  Connector connector(*connect_unix(server.name), "test", credential, {});
  auto outcome = shake(server, connector);
  EXPECT_TRUE(outcome && outcome->ok());
  EXPECT_TRUE(until(server, [&] { return server.listener.half_open() == 0; }));
  EXPECT_TRUE(server.listener.timer().is_never());
  PageSocket watched(std::move(*silent));
  EXPECT_TRUE(until(server, [&] { return watched.receive().code() == Code::kPeerLost; }));
}

TEST(Bootstrap, HalfOpenConnectionsAreBounded) {
  Credential credential;
  Server server(credential, {.half_open = 10, .handshake = 60s});
  std::vector<nessie::Fd> silent;
  for (int i = 0; i < 100; ++i) silent.push_back(std::move(*connect_unix(server.name)));
  Connector connector(*connect_unix(server.name), "test", credential, {});
  auto outcome = shake(server, connector);
  EXPECT_TRUE(outcome && outcome->ok());
  EXPECT_LE(server.listener.half_open(), 10u);
}

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

/// Sends bytes, one at a time, of a page that is never whole, each with as many descriptors as go with it.
TEST(Bootstrap, StrangersWhoSendDescriptorsAreBoundedByThem) {
  Credential credential;
  constexpr std::size_t kMost = 20;
  Server server(credential, {.half_open = kMost, .handshake = 60s});
  const std::size_t before = open_descriptors();
  std::vector<nessie::Fd> strangers;
  const std::vector<std::byte> page = [] {
    std::vector<std::byte> bytes;
    encode_page(PageType::kHello, 8, std::vector<std::byte>(1000), bytes);
    return bytes;
  }();
  for (int i = 0; i < 10; ++i) {
    strangers.push_back(std::move(*connect_unix(server.name)));
    for (int sent = 0; sent < 40; ++sent) {
      std::array<int, 16> descriptors;
      descriptors.fill(0);
      iovec byte{const_cast<std::byte *>(&page[static_cast<std::size_t>(sent)]), 1};
      alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof descriptors)> control{};
      msghdr message{};
      message.msg_iov = &byte;
      message.msg_iovlen = 1;
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      auto *header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(sizeof descriptors);
      std::memcpy(CMSG_DATA(header), descriptors.data(), sizeof descriptors);
      (void)::sendmsg(strangers.back().get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    for (int turn = 0; turn < 50; ++turn) server.listener.progress();
    EXPECT_LE(open_descriptors(), before + strangers.size() + 2 * kMost);
  }
  Connector connector(*connect_unix(server.name), "test", credential, {});
  auto outcome = shake(server, connector);
  EXPECT_TRUE(outcome && outcome->ok());
}

/// The child has the socket too, so that closing it here alone does not take it out of the listener's set.
TEST(Bootstrap, AStrangerWhoIsDroppedIsNotHeardAnyMore_ThoughAForkedChildHasItsSocket) {
  Credential credential;
  Server server(credential, {.half_open = 256, .handshake = 20ms});
  auto silent = connect_unix(server.name);
  ASSERT_TRUE(silent.ok());
  ASSERT_TRUE(until(server, [&] { return server.listener.half_open() == 1; }));
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  EXPECT_TRUE(until(server, [&] { return server.listener.half_open() == 0; }));
  EXPECT_EQ(::write(silent->get(), "x", 1), 1);
  pollfd interest{server.listener.wait_fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&interest, 1, 0), 0) << "the listener waits for one that it has forgotten";
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST(Bootstrap, WhereNoDescriptorsAreLeft_ThatIsSaidOfSockets) {
  const NoMoreDescriptors none;
  EXPECT_EQ(connect_tcp("127.0.0.1", 1).code(), Code::kNoMemory);
  EXPECT_EQ(connect_unix("nessie-nobody-here").code(), Code::kNoMemory);
}

TEST(Bootstrap, WhereNoDescriptorsAreLeft_NoEndpointIsOpened) {
  struct : EventSink {
    void on_message(PeerId, std::span<const std::byte>) override {}
    void on_peer_lost(PeerId, const Error &) override {}
  } nobody;
  EndpointOptions options;
  options.transports = {"inproc"};
  options.credential = Credential::generate();
  const NoMoreDescriptors none;
  EXPECT_EQ(Endpoint::open(std::move(options), nobody).code(), Code::kNoMemory);
}

TEST(Bootstrap, GarbageIsDropped) {
  Credential credential;
  Server server(credential);
  auto socket = connect_unix(server.name);
  ASSERT_EQ(::write(socket->get(), "GET / HTTP/1.1\r\n\r\n", 18), 18);
  PageSocket watched(std::move(*socket));
  EXPECT_TRUE(until(server, [&] { return watched.receive().code() == Code::kPeerLost; }));
  EXPECT_EQ(server.listener.half_open(), 0u);
}

TEST(Bootstrap, TheEndOfAPeerShows) {
  Credential credential;
  Server server(credential);
  {
    Connector connector(*connect_unix(server.name), "test", credential, {});
    auto outcome = shake(server, connector);
    ASSERT_TRUE(outcome && outcome->ok());
  }
  ASSERT_EQ(server.accepted.size(), 1u);
  EXPECT_EQ(server.accepted[0].socket.receive().code(), Code::kPeerLost);
}

TEST(Bootstrap, NobodyListensOverTcpIsPeerLostWithTheCause) {
  PageSocket socket(*connect_tcp("127.0.0.1", 1));
  pollfd end{socket.fd(), POLLOUT, 0};
  ASSERT_EQ(::poll(&end, 1, 30'000), 1);
  socket.send(PageType::kHello, {});
  const auto received = socket.receive();
  ASSERT_EQ(received.code(), Code::kPeerLost);
  EXPECT_EQ(received.error().cause, ECONNREFUSED);
}

TEST(Bootstrap, NobodyListensIsPeerLost) { EXPECT_EQ(connect_unix("nessie-nobody-here").code(), Code::kPeerLost); }

TEST(Page, LooksOnTheWireAsTheReadmeSays) {
  std::vector<std::byte> bytes;
  encode_page(PageType::kProof, 2, std::vector<std::byte>{std::byte{0xab}}, bytes);
  const unsigned char golden[] = {'N', 'N', 'T', 'I', 0, 3, 0, 2, 0, 0, 0, 1, 0xab};
  ASSERT_EQ(bytes.size(), sizeof golden);
  EXPECT_EQ(std::memcmp(bytes.data(), golden, sizeof golden), 0);
}

TEST(Page, IsFoundByteByByte) {
  std::vector<std::byte> bytes;
  encode_page(PageType::kHello, 0, std::vector<std::byte>(100, std::byte{1}), bytes);
  PageDecoder decoder;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    auto page = decoder.next();
    ASSERT_TRUE(page.ok() && !*page) << i;
    decoder.feed(std::span(bytes).subspan(i, 1));
  }
  auto page = decoder.next();
  ASSERT_TRUE(page.ok() && *page);
  EXPECT_EQ((**page).body.size(), 100u);
}

}  // namespace
}  // namespace nnti::bootstrap

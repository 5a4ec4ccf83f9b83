// SPDX-License-Identifier: BSD-3-Clause
// Which transport an endpoint chooses for each peer, and what it says of the others.
#include "nnti/conformance/conformance.hpp"

#include "nnti/transport/transport.hpp"

#include <algorithm>
#include <map>

namespace nnti::conformance {
namespace {

bool is_available(std::string_view transport) {
  for (const auto &info : Endpoint::survey({}))
    if (info.name == transport) return info.available;
  return false;
}

const Subject &subject_named(std::string_view name) { return *std::ranges::find(subjects(), name, &Subject::name); }

/// With every transport that is there. The network stays at the loopback.
class Choosing : public testing::Test {
 protected:
  std::unique_ptr<Endpoint> open(std::vector<std::string> transports, bool listen) {
    EndpointOptions options;
    options.transports = std::move(transports);
    options.credential = credential_;
    options.listen = listen;
    options.config.set("nnti.ofi.address", "127.0.0.1");
    auto opened = Endpoint::open(std::move(options), listen ? server_seen_ : seen_);
    EXPECT_TRUE(opened.ok()) << opened.error().to_string();
    return opened.ok() ? std::move(*opened) : nullptr;
  }
  /// A URL at which nobody listens any more.
  std::string dead_url(std::string_view transport) { return open({std::string(transport)}, true)->url(); }
  Node node(std::string_view subject, bool listen) { return {subject_named(subject), credential_, listen}; }
  void need_network() {
    if (!is_available("ofi")) GTEST_SKIP() << "there is no network transport here";
  }

  nessie::Credential credential_ = nessie::Credential::generate();
  Recorder seen_, server_seen_;
};

TEST_F(Choosing, OneProcessTalksToThreePeersOverThreeTransportsAtOnce) {
  need_network();
  if (IsSkipped()) return;
  Child shm_child(subject_named("shm"), credential_), ofi_child(subject_named("ofi"), credential_);
  auto here = node("inproc", true);
  here.seen.message_hook = [&](PeerId from, std::span<const std::byte> message) {
    EXPECT_TRUE(here.endpoint->send(from, message).ok());
  };
  auto client = open({}, false);
  Driver driver(here);
  const std::map<std::string, std::string> urls = {
      {"inproc", here.endpoint->url()}, {"shm", shm_child.url()}, {"ofi", ofi_child.url()}};
  std::map<std::string, PeerId> peers;
  for (const auto &[transport, url] : urls) {
    auto peer = client->connect(url, Deadline::in(kWatchdog));
    ASSERT_TRUE(peer.ok()) << peer.error().to_string();
    EXPECT_EQ(client->transport_of(*peer), transport);
    peers[transport] = *peer;
  }
  std::map<std::uint64_t, std::string> answers;
  seen_.message_hook = [&](PeerId from, std::span<const std::byte> message) { answers[from.value] = text_of(message); };
  for (const auto &[transport, peer] : peers) ASSERT_TRUE(client->send(peer, bytes_of("echo over " + transport)).ok());
  for (auto watchdog = Deadline::in(kWatchdog); answers.size() < peers.size() && !watchdog.passed();)
    if (client->progress() == 0) client->wait(Deadline::in(100ms));
  for (const auto &[transport, peer] : peers) EXPECT_EQ(answers[peer.value], "echo over " + transport);
}

TEST_F(Choosing, PrefersTheNearestAndSaysWhatItPassedOver) {
  auto server = node("inproc", true);
  auto client = open({}, false);
  Driver driver(server);
  const auto url = "pigeon://coop/7;" + dead_url("shm") + ";" + server.endpoint->url();
  auto peer = client->connect(url, Deadline::in(kWatchdog));
  ASSERT_TRUE(peer.ok()) << peer.error().to_string();
  EXPECT_EQ(client->transport_of(*peer), "inproc");
  const auto text = client->explain(*peer);
  EXPECT_NE(text.find("shm: comes after inproc"), std::string::npos) << text;
  EXPECT_NE(text.find("pigeon: no transport is called so"), std::string::npos) << text;
}

TEST_F(Choosing, GoesOnWhereNobodyListensAtTheFirst) {
  need_network();
  if (IsSkipped()) return;
  auto server = node("ofi", true);
  auto client = open({}, false);
  Driver driver(server);
  const auto url = dead_url("shm") + ";" + dead_url("ofi") + ";" + server.endpoint->url();
  auto peer = client->connect(url, Deadline::in(kWatchdog));
  ASSERT_TRUE(peer.ok()) << peer.error().to_string();
  EXPECT_EQ(client->transport_of(*peer), "ofi");
  EXPECT_NE(client->explain(*peer).find("not over shm: "), std::string::npos) << client->explain(*peer);
}

TEST_F(Choosing, LeavesTimeForTheNextWhereTheFirstIsSilent) {
  need_network();
  if (IsSkipped()) return;
  auto silent = node("shm", true);
  auto server = node("ofi", true);
  auto client = open({}, false);
  Driver driver(server);
  auto peer = client->connect(silent.endpoint->url() + ";" + server.endpoint->url(), Deadline::in(6s));
  ASSERT_TRUE(peer.ok()) << peer.error().to_string();
  EXPECT_NE(client->explain(*peer).find("did not answer in time"), std::string::npos) << client->explain(*peer);
}

TEST_F(Choosing, SaysOfEachWhyItFailed) {
  need_network();
  if (IsSkipped()) return;
  auto client = open({}, false);
  auto peer = client->connect(dead_url("ofi") + ";" + dead_url("shm"), Deadline::in(kWatchdog));
  ASSERT_FALSE(peer.ok());
  EXPECT_EQ(peer.code(), Code::kPeerLost);
  EXPECT_NE(peer.error().message.find("shm: "), std::string::npos) << peer.error().message;
  EXPECT_NE(peer.error().message.find("ofi: "), std::string::npos) << peer.error().message;
}

TEST_F(Choosing, AWrongCredentialIsFinal) {
  const auto other_credential = nessie::Credential::generate();
  auto server = node("shm", true);
  Node other(subject_named("shm"), other_credential, true), client(subject_named("shm"), other_credential, false);
  Driver driver(server), other_driver(other);
  const auto refusing_first = server.endpoint->url() + ";" + other.endpoint->url();
  EXPECT_EQ(client.endpoint->connect(refusing_first, Deadline::in(kWatchdog)).code(), Code::kRefused);
  EXPECT_TRUE(client.endpoint->connect(other.endpoint->url(), Deadline::in(kWatchdog)).ok());
}

TEST_F(Choosing, OfNothingThatIsHereListsWhatIsHere) {
  auto client = open({}, false);
  for (const char *url : {"nonsense", "pigeon://coop/7", "shm:", "pigeon://a;carrier://b"}) {
    auto peer = client->connect(url, Deadline::in(1s));
    ASSERT_FALSE(peer.ok()) << url;
    for (const auto &kind : transport_list())
      EXPECT_NE(peer.error().message.find(kind.name), std::string::npos) << url << ": " << peer.error().message;
  }
}

TEST_F(Choosing, AnEndpointOfOneTransportNamesOnlyThat) {
  auto client = open({"shm"}, false);
  auto peer = client->connect("inproc://somebody", Deadline::in(1s));
  ASSERT_EQ(peer.code(), Code::kUnsupported);
  EXPECT_NE(peer.error().message.find("opened without it"), std::string::npos) << peer.error().message;
  EXPECT_TRUE(peer.error().message.ends_with("there are: shm")) << peer.error().message;
}

TEST_F(Choosing, ThresholdsNameTheirSettings) {
  nessie::Config config;
  config.set("nnti.spin_us", "7");
  auto thresholds = Endpoint::thresholds(config);
  ASSERT_TRUE(thresholds.ok());
  auto said = [&](std::string_view text) {
    return std::ranges::any_of(*thresholds,
                               [&](const Fact &fact) { return fact.value.find(text) != std::string::npos; });
  };
  EXPECT_TRUE(said("7 us (nnti.spin_us; from a flag)"));
  EXPECT_TRUE(said("nnti.eager_memory; default"));
  config.set("nnti.spin_us", "soon");
  EXPECT_EQ(Endpoint::thresholds(config).code(), Code::kInvalidArgument);
}

TEST_F(Choosing, TheSurveySaysHowLargeAMailboxIsAndWhy) {
  nessie::Config config;
  config.set("nnti.job_size", "20000");
  for (const auto &info : Endpoint::survey(config)) {
    if (info.name != "shm" || !info.available) continue;
    auto mailbox = std::ranges::find(info.facts, "mailbox", &Fact::name);
    ASSERT_NE(mailbox, info.facts.end());
    EXPECT_EQ(mailbox->value, "1088 bytes each way of a connection, for a job of 20000 (nnti.job_size; from a flag)");
  }
}

/// Both sides offer a lane, or neither uses one.
void expect_messages_without_lane(Node &server, Node &client) {
  PeerId to_server;
  {
    Driver driver(server);
    auto connected = client.endpoint->connect(server.endpoint->url(), Deadline::in(kWatchdog));
    ASSERT_TRUE(connected.ok()) << connected.error().to_string();
    to_server = *connected;
  }
  EXPECT_EQ(client.endpoint->explain(to_server).find("nnti.lane"), std::string::npos);
  ASSERT_TRUE(drive({&client, &server}, [&] { return !server.seen.connected.empty(); }));
  const auto message = pattern(8192);
  ASSERT_TRUE(client.endpoint->send(to_server, message).ok());
  ASSERT_TRUE(server.endpoint->send(server.seen.connected[0], message).ok());
  ASSERT_TRUE(
      drive({&client, &server}, [&] { return !client.seen.messages.empty() && !server.seen.messages.empty(); }));
  EXPECT_EQ(client.seen.messages[0], message);
  EXPECT_EQ(server.seen.messages[0], message);
}

TEST_F(Choosing, ALaneNeedsBothSides) {
  for (const std::string transport : {"ofi", "ucx"}) {
    if (!is_available(transport)) continue;
    SCOPED_TRACE(transport);
    auto with = node(transport, true), without = node(transport + "_without_lane", true);
    auto client = node(transport, false), client_without = node(transport + "_without_lane", false);
    expect_messages_without_lane(with, client_without);
    expect_messages_without_lane(without, client);
  }
}

}  // namespace
}  // namespace nnti::conformance

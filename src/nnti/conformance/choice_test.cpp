// SPDX-License-Identifier: BSD-3-Clause
// Which transport an endpoint chooses for each peer, and what it says of the others.
#include "nnti/conformance/conformance.hpp"

#include "nnti/transport/transport.hpp"

#include <algorithm>
#include <map>
#include <stop_token>
#include <thread>

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
    for (const char *network : {"nnti.tcp.address", "nnti.ofi.address", "nnti.ucx.address"})
      options.config.set(network, "127.0.0.1");
    auto opened = Endpoint::open(std::move(options), listen ? server_seen_ : seen_);
    EXPECT_TRUE(opened.ok()) << opened.error().to_string();
    return opened.ok() ? std::move(*opened) : nullptr;
  }
  /// A URL at which nobody listens any more.
  std::string dead_url(std::string_view transport) { return open({std::string(transport)}, true)->url(); }
  Node node(std::string_view subject, bool listen) { return {subject_named(subject), credential_, listen}; }

  nessie::Credential credential_ = nessie::Credential::generate();
  Recorder seen_, server_seen_;
};

TEST_F(Choosing, ACallbackMayConnect_ThoughThatOpensATransport) {
  auto in_process = open({"inproc"}, true), on_node = open({"shm"}, true), behind_tcp = open({"tcp"}, true);
  auto client = open({"inproc", "shm", "tcp"}, false);
  const auto until = [&](const auto &state) {
    return test::until(state, [&] {
      for (auto *endpoint : {in_process.get(), on_node.get(), behind_tcp.get(), client.get()}) endpoint->progress();
    });
  };
  std::optional<ConnectAttempt> attempt;
  std::optional<Result<PeerId>> outcome;
  const auto begin = [&](const Endpoint &to) {
    attempt.emplace(*client->start_connecting(to.url(), Deadline::in(kWatchdog)));
    outcome = attempt->advance();
  };
  const auto connected = [&] { return outcome || (attempt && (outcome = attempt->advance())); };
  std::vector<PeerId> peers;
  for (const auto *server : {in_process.get(), on_node.get()}) {
    begin(*server);
    ASSERT_TRUE(until(connected));
    ASSERT_TRUE(outcome->ok()) << outcome->error().to_string();
    peers.push_back(**outcome);
  }
  server_seen_.message_hook = [&](PeerId from, std::span<const std::byte> message) {
    EXPECT_TRUE(in_process->send(from, message).ok());
  };
  attempt.reset();
  outcome.reset();
  seen_.message_hook = [&](PeerId, std::span<const std::byte>) { begin(*behind_tcp); };
  ASSERT_TRUE(client->send(peers[0], {}).ok());  // the others make their progress after this one
  ASSERT_TRUE(until(connected));
  ASSERT_TRUE(outcome->ok()) << outcome->error().to_string();
  EXPECT_EQ(client->transport_of(**outcome), "tcp");
}

TEST_F(Choosing, OneProcessTalksToThreePeersOverThreeTransportsAtOnce) {
  Child shm_child(subject_named("shm"), credential_), tcp_child(subject_named("tcp"), credential_);
  auto here = node("inproc", true);
  here.seen.message_hook = [&](PeerId from, std::span<const std::byte> message) {
    EXPECT_TRUE(here.endpoint->send(from, message).ok());
  };
  auto client = open({}, false);
  Driver driver(here);
  const std::map<std::string, std::string> urls = {
      {"inproc", here.endpoint->url()}, {"shm", shm_child.url()}, {"tcp", tcp_child.url()}};
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

TEST_F(Choosing, AnEndpointThatIsToListenSomewhereDoesNotGoWithoutThat) {
  const auto taken = open({"tcp"}, true);
  const auto free = dead_url("shm");
  const auto listening_at = [&](const std::string &list) {
    EndpointOptions options;
    options.credential = credential_;
    options.config.set("nnti.tcp.address", "127.0.0.1");
    options.config.set("nnti.listen_at", list);
    return Endpoint::open(std::move(options), seen_);
  };
  EXPECT_EQ(listening_at(free + "|" + taken->url()).code(), Code::kExists);
  EXPECT_EQ(listening_at("over there").code(), Code::kInvalidArgument);
  EXPECT_EQ(listening_at("shm://another-node/nessie").code(), Code::kInvalidArgument);
  const auto some = listening_at(free);
  ASSERT_TRUE(some.ok()) << some.error().to_string();
  EXPECT_NE(((*some)->url() + ";").find(free + ";"), std::string::npos) << (*some)->url();
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
  auto server = node("tcp", true);
  auto client = open({}, false);
  Driver driver(server);
  const auto url = dead_url("shm") + ";" + dead_url("tcp") + ";" + server.endpoint->url();
  auto peer = client->connect(url, Deadline::in(kWatchdog));
  ASSERT_TRUE(peer.ok()) << peer.error().to_string();
  EXPECT_EQ(client->transport_of(*peer), "tcp");
  EXPECT_NE(client->explain(*peer).find("not over shm: "), std::string::npos) << client->explain(*peer);
}

TEST_F(Choosing, LeavesTimeForTheNextWhereTheFirstIsSilent) {
  auto silent = node("shm", true);
  auto server = node("tcp", true);
  auto client = open({}, false);
  Driver driver(server);
  auto peer = client->connect(silent.endpoint->url() + ";" + server.endpoint->url(), Deadline::in(6s));
  ASSERT_TRUE(peer.ok()) << peer.error().to_string();
  EXPECT_NE(client->explain(*peer).find("did not answer in time"), std::string::npos) << client->explain(*peer);
}

TEST_F(Choosing, EndsAtOnceWhenNobodyWantsItAnyMore) {
  auto silent = node("shm", true);
  auto client = open({}, false);
  std::stop_source stop;
  std::jthread other([&] { stop.request_stop(); });
  EXPECT_EQ(client->connect(silent.endpoint->url(), Deadline::never(), stop.get_token()).code(), Code::kCancelled);
  EXPECT_EQ(client->connect(silent.endpoint->url(), Deadline::never(), stop.get_token()).code(), Code::kCancelled);
}

TEST_F(Choosing, SaysOfEachWhyItFailed) {
  auto client = open({}, false);
  auto peer = client->connect(dead_url("tcp") + ";" + dead_url("shm"), Deadline::in(kWatchdog));
  ASSERT_FALSE(peer.ok());
  EXPECT_EQ(peer.code(), Code::kPeerLost);
  EXPECT_NE(peer.error().message.find("shm: "), std::string::npos) << peer.error().message;
  EXPECT_NE(peer.error().message.find("tcp: "), std::string::npos) << peer.error().message;
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

/// Of its network library: its real fabrics are at the machine's mercy, and not asked for.
bool has_only_tcp(std::string_view transport) {
  for (const auto &info : Endpoint::survey({}))
    if (info.name == transport) return info.explanation.find("nothing but TCP") != std::string::npos;
  return false;
}

TEST_F(Choosing, WhereALibraryHasNothingButTcp_ListensAtTcpInstead) {
  const auto url = open({}, true)->url();
  EXPECT_NE(url.find("tcp://"), std::string::npos) << url;
  for (const std::string transport : {"ofi", "ucx"}) {
    if (!is_available(transport) || !has_only_tcp(transport)) continue;
    EXPECT_EQ(url.find(transport + "://"), std::string::npos) << url;
    auto server = node(transport, true);
    EXPECT_TRUE(server.endpoint->url().starts_with(transport + "://")) << "by name it is used all the same";
    Driver driver(server);
    for (const bool listens : {false, true}) {
      auto client = open({}, listens);
      const auto peer = client->connect(server.endpoint->url(), Deadline::in(kWatchdog));
      ASSERT_TRUE(peer.ok()) << "and a URL names it: " << peer.error().to_string();
      EXPECT_EQ(client->transport_of(*peer), transport);
    }
  }
}

}  // namespace
}  // namespace nnti::conformance

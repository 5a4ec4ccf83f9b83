// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/conformance/conformance.hpp"

#include "base/fd.hpp"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>

namespace nnti::conformance {
namespace {

class Processes : public Conformance {};

std::vector<Subject> subjects_between_processes() {
  std::vector<Subject> chosen;
  std::ranges::copy_if(subjects(), std::back_inserter(chosen), &Subject::between_processes);
  return chosen;
}

/// As a container has it: processes that are started meanwhile see none of the others, which see them. No thread can be
/// started meanwhile.
class PidNameSpace {
 public:
  PidNameSpace() : ours_(::open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC)), is_new_(::unshare(CLONE_NEWPID) == 0) {}
  ~PidNameSpace() {
    if (is_new_) { EXPECT_EQ(::setns(ours_.get(), CLONE_NEWPID), 0); }
  }
  PidNameSpace(const PidNameSpace &) = delete;
  bool is_new() const { return is_new_; }

 private:
  const nessie::Fd ours_;
  const bool is_new_;
};

using Starter = Child(const Subject &, const nessie::Credential &);
Child start(const Subject &subject, const nessie::Credential &credential) { return Child(subject, credential); }
Child start_in_pid_name_space(const Subject &subject, const nessie::Credential &credential) {
  const PidNameSpace container;
  return Child(subject, credential);
}

/// A client here, and its server in another process.
struct Apart {
  explicit Apart(const Subject &subject, Starter *starter = start)
      : child(starter(subject, credential)), client(subject, credential, false) {
    auto connected = client.endpoint->connect(child.url(), Deadline::in(kWatchdog));
    EXPECT_TRUE(connected.ok()) << connected.error().to_string();
    if (connected.ok()) server = *connected;
  }
  bool until(const std::function<bool()> &state) { return drive({&client}, state); }
  bool is_lost() const { return !client.seen.lost.empty(); }
  void tell(std::string_view order) { EXPECT_TRUE(client.endpoint->send(server, bytes_of(order)).ok()); }
  /// Sends an order and takes the answer to it.
  Bytes ask(std::string_view order) {
    tell(order);
    if (!until([&] { return !client.seen.messages.empty() || is_lost(); }) || is_lost()) return {};
    return std::exchange(client.seen.messages, {})[0];
  }
  RemoteBuffer borrow(std::string_view which) {
    RemoteBuffer remote;
    auto answer = ask(which);
    EXPECT_EQ(answer.size(), sizeof remote);
    if (answer.size() == sizeof remote) std::memcpy(&remote, answer.data(), sizeof remote);
    return remote;
  }
  Status finish(Outcome &outcome) {
    EXPECT_TRUE(until([&] { return outcome.times != 0; }));
    EXPECT_EQ(outcome.times, 1);
    return outcome.status;
  }

  nessie::Credential credential = nessie::Credential::generate();
  Child child;
  Node client;
  PeerId server;
};

TEST_P(Processes, TalkToEachOther) {
  Apart apart(subject());
  EXPECT_EQ(text_of(apart.ask("echo of another process")), "echo of another process");
}

TEST_P(Processes, AreThoseThatTheKernelNames_OrNotNamedBetweenNodes) {
  Apart apart(subject());
  const auto child = apart.client.endpoint->process_of(apart.server);
  const auto ours = apart.ask("who am I");
  ASSERT_EQ(child.ok(), apart.client.endpoint->can_give_descriptors(apart.server));
  if (!child.ok()) {
    EXPECT_EQ(child.code(), Code::kUnsupported);
    EXPECT_EQ(text_of(ours), "nobody knows");
    return;
  }
  EXPECT_EQ(*child, apart.child.process());
  EXPECT_EQ(text_of(ours), std::to_string(::getpid()));
  apart.child.kill();
  ASSERT_TRUE(apart.until([&] { return apart.is_lost(); }));
  EXPECT_EQ(apart.client.endpoint->process_of(apart.server).code(), Code::kPeerLost);
}

TEST_P(Processes, OfAPidNameSpaceOfTheirOwnAreNamedAsTheyAreSeen) {
  if (subject().transport != "shm") GTEST_SKIP() << "the kernel names processes over shm";
  if (!PidNameSpace().is_new())
    GTEST_SKIP() << "makes a pid name space, which takes rights, and a process of one thread";
  Apart apart(subject(), start_in_pid_name_space);
  const auto child = apart.client.endpoint->process_of(apart.server);
  ASSERT_TRUE(child.ok()) << child.error().to_string();
  EXPECT_EQ(*child, apart.child.process());
  EXPECT_EQ(text_of(apart.ask("who am I")), "nobody knows");
}

TEST_P(Processes, ReachEachOthersMemory) {
  Apart apart(subject());
  for (const char *which : {"own", "shared"}) {
    auto remote = apart.borrow(which);
    Bytes local(remote.size_bytes);
    Outcome got;
    apart.client.endpoint->get(apart.server, remote, 0, local, got);
    auto status = apart.finish(got);
    ASSERT_TRUE(status.ok()) << which << ": " << status.error().to_string();
    EXPECT_EQ(local, pattern(local.size(), 7)) << which;
    Bytes ones(local.size(), std::byte{1});
    Outcome put;
    apart.client.endpoint->put(apart.server, remote, 0, ones, put);
    ASSERT_TRUE(apart.finish(put).ok()) << which;
    auto answer = apart.ask("sum");
    std::uint64_t sum = 0;
    ASSERT_EQ(answer.size(), sizeof sum);
    std::memcpy(&sum, answer.data(), sizeof sum);
    EXPECT_EQ(sum, local.size()) << which;
  }
}

TEST_P(Processes, NoticeTheDeathOfAnIdlePeer) {
  Apart apart(subject());
  EXPECT_EQ(text_of(apart.ask("echo")), "echo");
  apart.child.kill();
  ASSERT_TRUE(apart.until([&] { return apart.is_lost(); }));
  EXPECT_EQ(apart.client.seen.lost.size(), 1u);
  EXPECT_EQ(apart.client.seen.lost[0].second.code, Code::kPeerLost);
  EXPECT_EQ(apart.client.endpoint->send(apart.server, bytes_of("x")).code(), Code::kPeerLost);
  EXPECT_EQ(apart.child.reap(), -SIGKILL);
}

TEST_P(Processes, AreFoundWhereOneWasThatWasKilled) {
  if (subject().lossy()) GTEST_SKIP() << "what a faulty network is put around listens where it likes";
  Apart apart(subject());
  EXPECT_EQ(text_of(apart.ask("echo of the first")), "echo of the first");
  const auto url = apart.child.url();
  apart.child.kill();
  EXPECT_EQ(apart.child.reap(), -SIGKILL);
  const Child successor(subject(), apart.credential, url);
  EXPECT_EQ(successor.url(), url);
  ASSERT_TRUE(apart.until([&] { return apart.is_lost(); })) << "the successor is another one";
  apart.client.seen.lost.clear();
  auto connected = apart.client.endpoint->connect(url, Deadline::in(kWatchdog));
  ASSERT_TRUE(connected.ok()) << connected.error().to_string();
  apart.server = *connected;
  EXPECT_EQ(text_of(apart.ask("echo of the second")), "echo of the second");
}

TEST_P(Processes, AreNotOpenedWhereAnotherOneListens) {
  if (subject().lossy()) GTEST_SKIP() << "what a faulty network is put around listens where it likes";
  const auto credential = nessie::Credential::generate();
  const Child child(subject(), credential);
  EndpointOptions options;
  options.transports = {subject().transport};
  options.credential = credential;
  for (const auto &[key, value] : subject().settings) options.config.set(key, value);
  options.config.set("nnti.listen_at", child.url());
  Recorder nobody;
  EXPECT_EQ(Endpoint::open(std::move(options), nobody).code(), Code::kExists);
}

TEST_P(Processes, ReceiveWhatAPeerSentBeforeItDied) {
  if (subject().lossy()) GTEST_SKIP() << "what a lossy network loses, nobody is left to send again";
  Apart apart(subject());
  apart.tell("last words");
  ASSERT_TRUE(apart.until([&] { return apart.is_lost(); }));
  ASSERT_EQ(apart.client.seen.messages.size(), 3u);
  EXPECT_EQ(text_of(apart.client.seen.messages[2]), "three");
}

TEST_P(Processes, ReadOnInMemoryOfAPeerThatWasKilled) {
  Apart apart(subject());
  auto remote = apart.borrow("shared");
  auto seen = apart.client.endpoint->view(apart.server, remote, 0, remote.size_bytes);
  ASSERT_EQ(seen.ok(), apart.client.endpoint->can_view(apart.server));
  if (!seen.ok()) GTEST_SKIP() << subject().name << " maps no memory";
  apart.child.kill();
  ASSERT_TRUE(apart.until([&] { return apart.is_lost(); }));
  EXPECT_TRUE(std::ranges::equal(seen->bytes(), pattern(remote.size_bytes, 7)));
  EXPECT_EQ(apart.client.endpoint->view(apart.server, remote, 0, remote.size_bytes).code(), Code::kPeerLost);
}

TEST_P(Processes, ViewTheMemoryThatALastMessageNamesAfterItsSenderWasKilled) {
  Apart apart(subject());
  if (!apart.client.endpoint->can_view(apart.server)) GTEST_SKIP() << subject().name << " maps no memory";
  Result<PeerView> seen = Error{Code::kInternal, "no message named memory"};
  apart.client.seen.message_hook = [&](PeerId from, std::span<const std::byte> message) {
    RemoteBuffer remote;
    if (message.size() != sizeof remote) return;
    std::memcpy(&remote, message.data(), sizeof remote);
    seen = apart.client.endpoint->view(from, remote, 0, remote.size_bytes);
  };
  apart.tell("shared");
  apart.tell("last words");
  EXPECT_EQ(apart.child.reap(), -SIGKILL);  // before anything of it was looked at here
  ASSERT_TRUE(apart.until([&] { return apart.is_lost(); }));
  ASSERT_TRUE(seen.ok()) << seen.error().to_string();
  EXPECT_TRUE(std::ranges::equal(seen->bytes(), pattern(1 << 20, 7)));
}

TEST_P(Processes, CompleteWhatWasPendingWithAPeerThatDied) {
  Apart apart(subject());
  auto remote = apart.borrow("own");
  apart.tell("freeze");
  std::vector<Bytes> local(20, Bytes(remote.size_bytes));
  std::vector<Outcome> outcomes(20);
  for (std::size_t i = 0; i < outcomes.size(); ++i)
    apart.client.endpoint->get(apart.server, remote, 0, local[i], outcomes[i]);
  int completed_before_loss = 0;
  apart.client.seen.lost_hook = [&](PeerId) {
    for (auto &outcome : outcomes) completed_before_loss += outcome.times;
  };
  apart.child.kill();
  ASSERT_TRUE(apart.until([&] { return apart.is_lost(); }));
  EXPECT_EQ(completed_before_loss, 20);
  for (auto &outcome : outcomes) {
    EXPECT_EQ(outcome.times, 1);
    EXPECT_TRUE(outcome.status.ok() || outcome.status.code() == Code::kPeerLost) << outcome.status.error().to_string();
  }
}

TEST_P(Processes, CancelWhatWasPendingWhenTheyDisconnect) {
  Apart apart(subject());
  auto remote = apart.borrow("own");
  apart.tell("freeze");
  Bytes local(remote.size_bytes);
  std::vector<Outcome> outcomes(5);
  for (auto &outcome : outcomes) apart.client.endpoint->get(apart.server, remote, 0, local, outcome);
  apart.client.endpoint->disconnect(apart.server);
  for (auto &outcome : outcomes) {
    EXPECT_EQ(outcome.times, 1);
    EXPECT_TRUE(outcome.status.ok() || outcome.status.code() == Code::kCancelled) << outcome.status.error().to_string();
  }
  EXPECT_FALSE(apart.is_lost());
}

TEST_P(Processes, SurviveAFloodToAPeerThatDies) {
  Apart apart(subject());
  apart.tell("freeze");
  std::size_t sent = 0;
  while (sent < 1'000'000 && apart.client.endpoint->send(apart.server, pattern(1000)).ok()) ++sent;
  EXPECT_LT(sent, 1'000'000u);
  apart.child.kill();
  EXPECT_TRUE(apart.until([&] { return apart.is_lost(); }));
}

TEST_P(Processes, LeaveWhenTheirClientLeaves) {
  Apart apart(subject());
  apart.client.endpoint->disconnect(apart.server);
  apart.until([&, turns = 0]() mutable { return ++turns > 3; });  // lets a transport send its farewell
  EXPECT_EQ(apart.child.reap(), 0);
}

INSTANTIATE_TEST_SUITE_P(Over, Processes, testing::ValuesIn(subjects_between_processes()),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace nnti::conformance

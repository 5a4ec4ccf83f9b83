// SPDX-License-Identifier: BSD-3-Clause
// The conformance suite: what every transport promises, tested over every transport that this machine has. A transport
// joins with one line in conformance.cpp.
#pragma once

#include "nnti/conformance/tools_testing.hpp"

#include <nnti/nnti.hpp>

#include <gtest/gtest.h>
#include <sys/types.h>

#include <functional>
#include <initializer_list>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace nnti::conformance {

using namespace std::chrono_literals;
using test::Bytes;
using test::kSanitized;
using test::Outcome;
using test::pattern;
using test::raw;
using Settings = std::vector<std::pair<std::string, std::string>>;

/// One way to run the suite.
struct Subject {
  std::string name;
  std::string transport;
  Settings settings;
  bool between_processes = true;
  /// Its network is faulty: what a process says before it is killed may be lost.
  bool lossy() const;
};
std::ostream &operator<<(std::ostream &out, const Subject &subject);
const std::vector<Subject> &subjects();
/// Those over which what stands above the transports is tried: each transport, and one of each decorator.
const std::vector<Subject> &subjects_for_upper_floors();

/// How long a state may take to come about before a test fails.
using nnti::kWatchdog;

Bytes bytes_of(std::string_view text);
std::string text_of(std::span<const std::byte> bytes);

struct Recorder final : EventSink {
  void on_message(PeerId from, std::span<const std::byte> message) override;
  void on_peer_connected(PeerId peer) override { connected.push_back(peer); }
  void on_peer_lost(PeerId peer, const Error &error) override;

  std::vector<Bytes> messages;
  std::vector<PeerId> connected;
  std::vector<std::pair<PeerId, Error>> lost;
  /// Called instead of recording the message.
  std::function<void(PeerId, std::span<const std::byte>)> message_hook;
  std::function<void(PeerId)> lost_hook;
};

/// An endpoint and what it has seen.
class Node {
 public:
  Node(const Subject &subject, const nessie::Credential &credential, bool listen, const Settings &settings = {});
  Recorder seen;
  std::unique_ptr<Endpoint> endpoint;
};

/// Makes progress on all of `nodes`, in one thread, until `state` holds. False: the watchdog bit.
bool drive(std::initializer_list<Node *> nodes, const std::function<bool()> &state);

/// Drives a node in a thread of its own until it goes out of scope.
class Driver {
 public:
  explicit Driver(Node &node);
  ~Driver();

 private:
  std::atomic<bool> stop_{false};
  Endpoint &endpoint_;
  std::thread thread_;
};

/// Two connected endpoints in this process. `client` connected to `server`.
struct Pair {
  explicit Pair(const Subject &subject, const Settings &settings = {});
  bool drive_until(const std::function<bool()> &state) { return drive({&client, &server}, state); }
  /// Waits for the transfer's end, which may need both sides.
  const Status &finish(Outcome &outcome);
  Status get(const RemoteBuffer &remote, std::uint64_t offset, std::span<std::byte> local);
  Status put(const RemoteBuffer &remote, std::uint64_t offset, std::span<const std::byte> local);
  /// The server's buffer as the client may use it.
  RemoteBuffer describe(const RegisteredBuffer &buffer);

  nessie::Credential credential = nessie::Credential::generate();
  Node server, client;
  PeerId to_server, to_client;
};

/// A process of its own that serves one client; see child.cpp for what it understands. Reaped in any case.
class Child {
 public:
  /// `listen_at`: as nnti.listen_at.
  Child(const Subject &subject, const nessie::Credential &credential, const std::string &listen_at = "");
  ~Child();
  const std::string &url() const { return url_; }
  pid_t process() const { return process_; }
  void kill();
  /// Waits for its end; the exit code, or -signal.
  int reap();

 private:
  pid_t process_ = -1;
  std::string url_;
};

/// The whole program of a child: opens an endpoint, says its URL, serves until its client is gone.
int run_child(int argc, char **argv);

class Conformance : public testing::TestWithParam<Subject> {
 protected:
  void SetUp() override;
  const Subject &subject() const { return GetParam(); }
};

}  // namespace nnti::conformance

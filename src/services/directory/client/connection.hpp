// SPDX-License-Identifier: BSD-3-Clause
// A connection to a directory that is made when it is needed, and made again. Any thread; any fiber of the runtime.
#pragma once

#include <base/clock.hpp>
#include <directory_rpc.hpp>
#include <service/locate.hpp>

#include <mutex>
#include <optional>
#include <string>

namespace directory {

using nessie::Clock;
using nessie::Code;
using nessie::Deadline;
using nessie::Error;
using nessie::Result;
using nessie::Scope;
using nessie::Status;
using nssi::PeerId;
using Client = DIRECTORY::ONE::Client;

/// Lets time pass on the runtime: suspends a fiber, drives elsewhere. kCancelled: the runtime is being destroyed.
Status pause(nssi::Runtime &runtime, Deadline until);

class Connection {
 public:
  /// `where`: as service::locate() takes it; looked at anew for each attempt. `runtime` must outlive this.
  Connection(nssi::Runtime &runtime, std::string where) : runtime_(runtime), where_(std::move(where)) {}
  ~Connection();
  Connection(const Connection &) = delete;

  nssi::Runtime &runtime() { return runtime_; }
  /// The directory's peer, if there is one now.
  std::optional<PeerId> peer() const;
  /// Makes one attempt, if there is none. A fiber does not hold up others meanwhile.
  Result<PeerId> connect(Deadline deadline);

  /// What `call(client, options)` answers. One attempt. A directory that is being stopped is gone: kPeerLost.
  template <class T, class Call> nssi::Outcome<T> try_once(Deadline deadline, const Call &call) {
    const auto peer = connect(deadline);
    if (!peer.ok()) return peer.error();
    nssi::CallOptions options;
    options.deadline = deadline;
    options.idempotent = true;
    Client client(runtime_, *peer);
    nssi::Outcome<T> outcome = call(client, options);
    if (outcome.code() == Code::kPeerLost) lose(*peer);
    if (outcome.code() == Code::kUnavailable) return Error{Code::kPeerLost, outcome.error().message, Scope::kPeer};
    return outcome;
  }
  /// The same; as long as the directory is not there, again and again until the deadline.
  template <class T, class Call> nssi::Outcome<T> ask(Deadline deadline, const Call &call) {
    for (Clock::duration wait = kFirstPause;; wait = std::min<Clock::duration>(2 * wait, kLongestPause)) {
      nssi::Outcome<T> outcome = try_once<T>(deadline, call);
      if (outcome.ok() || !may_come_back(outcome.code()) || deadline.passed()) return outcome;
      if (auto status = pause(runtime_, Deadline::in(wait).earlier(deadline)); !status.ok()) return status.error();
    }
  }

 private:
  static constexpr std::chrono::milliseconds kFirstPause{10}, kLongestPause{500};
  static bool may_come_back(Code code);
  Result<std::string> url() const;
  Result<PeerId> connect_in_fiber(const std::string &url, Deadline deadline);
  PeerId keep(PeerId peer);
  void lose(PeerId peer);

  nssi::Runtime &runtime_;
  const std::string where_;
  mutable std::mutex mutex_;
  std::optional<PeerId> peer_;
};

}  // namespace directory

// SPDX-License-Identifier: BSD-3-Clause
// A connection to a service that is made when it is needed, and made again when it was lost, wherever the service is
// then. Any thread; any fiber of the runtime.
#pragma once

#include <base/clock.hpp>
#include <nssi/stub.hpp>

#include <algorithm>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

namespace nessie::service {

using nssi::PeerId;

/// Lets time pass on the runtime: suspends a fiber, drives elsewhere. kCancelled: the runtime is being destroyed.
Status pause(nssi::Runtime &runtime, Deadline until);

/// As nssi::Runtime::connect(), which would keep the thread, and with it all other fibers, until there is a connection.
Result<PeerId> connect_in_fiber(nssi::Runtime &runtime, const std::string &url, Deadline deadline);

class Connection {
 public:
  /// Where the service is now, a URL or a list of them; asked anew for each attempt. Does not wait.
  using Find = std::function<Result<std::string>()>;
  /// `what`: for people, "the directory at file:x.contact". `runtime` must outlive this.
  Connection(nssi::Runtime &runtime, std::string what, Find find)
      : runtime_(runtime), what_(std::move(what)), find_(std::move(find)) {}
  ~Connection();
  Connection(const Connection &) = delete;

  nssi::Runtime &runtime() { return runtime_; }
  /// The service's peer, if there is a connection now.
  std::optional<PeerId> peer() const;
  /// Makes one attempt, if there is none. A fiber does not hold up others meanwhile. Errors as `find`, and as
  /// nssi::Runtime::connect().
  Result<PeerId> connect(Deadline deadline);

 protected:
  void lose(PeerId peer);

 private:
  PeerId keep(PeerId peer);

  nssi::Runtime &runtime_;
  const std::string what_;
  const Find find_;
  mutable std::mutex mutex_;
  std::optional<PeerId> peer_;
};

/// With calls by `Client`, a stub that `nessie idl` made.
template <class Client> class ConnectionOf : public Connection {
 public:
  using Connection::Connection;

  /// What `call(client, options)` answers: an idempotent call. One attempt. A service that is being stopped is gone:
  /// kPeerLost.
  template <class T, class Call> nssi::Outcome<T> try_once(Deadline deadline, const Call &call) {
    const auto peer = connect(deadline);
    if (!peer.ok()) return peer.error();
    nssi::CallOptions options;
    options.deadline = deadline;
    options.idempotent = true;
    Client client(runtime(), *peer);
    nssi::Outcome<T> outcome = call(client, options);
    if (outcome.code() == Code::kPeerLost) lose(*peer);
    if (outcome.code() == Code::kUnavailable) return Error{Code::kPeerLost, outcome.error().message, Scope::kPeer};
    return outcome;
  }
  /// The same; as long as the service is not there, again and again until the deadline.
  template <class T, class Call> nssi::Outcome<T> ask(Deadline deadline, const Call &call) {
    for (Clock::duration wait = kFirstPause;; wait = std::min<Clock::duration>(2 * wait, kLongestPause)) {
      nssi::Outcome<T> outcome = try_once<T>(deadline, call);
      if (outcome.ok() || !may_come_back(outcome.code()) || deadline.passed()) return outcome;
      if (auto status = pause(runtime(), Deadline::in(wait).earlier(deadline)); !status.ok()) return status.error();
    }
  }

 private:
  static constexpr std::chrono::milliseconds kFirstPause{10}, kLongestPause{500};
  static bool may_come_back(Code code) { return code == Code::kPeerLost || code == Code::kTimedOut; }
};

}  // namespace nessie::service

// SPDX-License-Identifier: BSD-3-Clause
// The directory, as processes see it who look for services, or announce theirs.
#pragma once

#include <base/clock.hpp>
#include <base/config.hpp>
#include <directory_rpc.hpp>
#include <service/connection.hpp>
#include <services/discovery/directory/instance.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace directory {

using nessie::Clock;
using nessie::Code;
using nessie::Deadline;
using nessie::Error;
using nessie::Result;
using nessie::Status;
using nessie::service::pause;
using nssi::PeerId;
using Client = DIRECTORY::ONE::Client;
using Connection = nessie::service::ConnectionOf<Client>;

/// Where the settings say that the directory is (`directory`, NESSIE_DIRECTORY). kNotFound: they do not.
Result<std::string> directory_of(const nessie::Config &config);

/// What is announced for as long as this lives. Moves; not to outlive the runtime. Dropped, it withdraws without
/// waiting for an answer; if that does not reach the directory, the lease runs out.
class Registration {
 public:
  Registration(Registration &&) noexcept;
  Registration &operator=(Registration &&) = delete;
  ~Registration();

  /// How the last renewal ended, from any thread. With an error the next one is tried again soon.
  Status status() const;
  /// Withdraws, and waits for it. kNotFound: the directory did not know of it any more. kTimedOut, kPeerLost: the lease
  /// runs out by itself. In all cases nothing is renewed any more.
  Status withdraw(Deadline deadline);

 private:
  friend class Directory;
  struct State;
  explicit Registration(std::shared_ptr<State> state);
  static void keep(const std::shared_ptr<State> &state);
  static Result<grant> renew(State &state, Deadline deadline);
  void stop();
  std::shared_ptr<State> state_;
};

/// Any thread. Each call connects if it has to, tries again while the directory is not there, and ends at its deadline.
/// Errors of all: kTimedOut, kPeerLost: the directory was not to be reached before the deadline. kRefused: it has
/// another credential. Those of locate(), if it cannot be found. kCancelled: the runtime was destroyed.
class Directory {
 public:
  /// `where`: a URL, `file:PATH` or `env:NAME`. Does not connect yet. `runtime` must outlive this.
  Directory(nssi::Runtime &runtime, const std::string &where);

  /// The instances of that name; none is no error. kInvalidArgument: nothing can have that name.
  Result<listing> lookup(std::string_view name, Deadline deadline);
  /// All whose names begin with `prefix`.
  Result<listing> list(std::string_view prefix, Deadline deadline);
  /// Waits until something that `query` asks for has changed since `seen` (`at` of a listing; a default one: at once),
  /// or the deadline passes: then what is there, with the same `at.generation` or a later one. Also returns, now and
  /// then, when nothing has changed. A directory that was started anew is another one: returns with what it knows by
  /// then. kBusy: more watches than the directory allows.
  Result<listing> watch(const query &query, mark seen, Deadline deadline);

  /// Announces `what`, and goes on renewing it, until the registration is dropped, at a third of the lease, with a
  /// fiber of the runtime: no thread is made, so renewals happen while somebody drives: in run(), or while he waits for
  /// anything. A process that does not drive cannot answer either; if that takes longer than the lease, it is not
  /// listed, and is listed again at its first turn. A directory that was started anew learns of it with the next
  /// renewal. Returns when it is announced. kInvalidArgument as check(). kNoMemory: a limit of the directory.
  Result<Registration> announce(const instance &what, std::chrono::milliseconds lease, Deadline deadline);

 private:
  std::shared_ptr<Connection> connection_;
};

inline constexpr std::chrono::milliseconds kDefaultLease{10'000};

}  // namespace directory

// SPDX-License-Identifier: BSD-3-Clause
// Names of services that the launcher of their job keeps: found by all whom the same mpiexec started, with MPI or
// without.
#pragma once

#include <services/discovery/contact/contact.hpp>
#include <services/discovery/contact/waiting.hpp>

#include <string>

namespace nessie::service {

/// A name that this process keeps. Moves. Dropped, it is withdrawn, for which the launcher has two seconds; not in a
/// child that was forked.
class LauncherName {
 public:
  /// `contact.process` and `incarnation` are filled in. kExists: another process has the name. Of two that publish it
  /// at the same instant, nobody is told; Open MPI 4 then finds neither. kInvalidArgument: it is no name; as to_text().
  /// kUnsupported, kTimedOut, kPeerLost, kIo as pmix::publish().
  static Result<LauncherName> publish(std::string name, Contact contact, Deadline deadline, const Pause &pause);
  LauncherName(LauncherName &&other) noexcept;
  LauncherName &operator=(LauncherName &&) = delete;
  ~LauncherName();

 private:
  LauncherName(std::string name, std::int64_t pid) : name_(std::move(name)), pid_(pid) {}
  std::string name_;  ///< empty: moved from
  std::int64_t pid_;
};

/// Waits until a service that is there has published the name. At the deadline, or 200 ms later, kTimedOut, if nobody
/// has, or the launcher does not answer; kPeerLost, if whoever did is gone, which can be told on its own node only.
/// kInvalidArgument: it is no name. kBadMessage, kUnsupported as parse_contact(); kUnsupported, kPeerLost, kIo as
/// pmix::look_up().
Result<Contact> wait_for_launcher_name(const std::string &name, Deadline deadline, const Pause &pause);

}  // namespace nessie::service

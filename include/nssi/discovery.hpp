// SPDX-License-Identifier: BSD-3-Clause
// How services let themselves be found, and clients find them: contact files, the directory, environment variables.
// docs/finding.md is about it. Library: nessie_discovery (Nessie::discovery, pkg-config nessie-discovery).
//
// A service:  auto announced = nssi::announce(*runtime, "file:/scratch/fields.contact", {}, Deadline::in(10s));
// A client:   auto peer = nssi::connect_to(*runtime, "file:/scratch/fields.contact", Deadline::in(60s));
#pragma once

#include <nssi/nssi.hpp>

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace nssi {

/// A process that was found.
struct Place {
  std::string url;                                              ///< as connect() takes it
  std::vector<Service> services;                                ///< what it offers, `peer` unset; empty: nobody said
  std::vector<std::pair<std::string, std::string>> attributes;  ///< what was said of it besides, in a directory
  std::string source;                                           ///< for people: "the contact file /run/a.contact"
  std::string name = {};  ///< under which it is announced; where a DirectoryWatch tells it
  bool operator==(const Place &) const = default;
};

/// `what` is a URL (or a list joined by ';'), `file:PATH` (a contact file), `pmix:NAME` (which the job's launcher
/// keeps), `dir:NAME` (in the directory that the setting `directory` names), or `env:VARIABLE`, which holds one or
/// several of these, separated by white space. Waits until the service is there, or the deadline has passed; drives the
/// runtime, or suspends the fiber, meanwhile. Of a name in a directory, all instances; never empty. kInvalidArgument:
/// it is none of these. kNotFound: the variable is not set, or no directory is named. kTimedOut: there is no such file,
/// or no such name. kPeerLost: the file or the launcher's name is stale, or directory or launcher are gone. kRefused:
/// the file could be somebody else's, or the directory has another credential. kBadMessage, kUnsupported: it is no
/// contact, or one of another version; kUnsupported: no launcher with PMIx started this process, or it keeps no names.
/// kIo.
Result<std::vector<Place>> find(Runtime &runtime, std::string_view what, Deadline deadline);

/// Finds, and connects to the first instance that can be reached. Errors as find() and Runtime::connect(); of several
/// instances, the last one's.
Result<PeerId> connect_to(Runtime &runtime, std::string_view what, Deadline deadline);

/// Connects to the first of `places` that can be reached. Errors as Runtime::connect(): the last one's; kNotFound:
/// there are none.
Result<PeerId> connect_to(Runtime &runtime, std::span<const Place> places, Deadline deadline);

/// What the directory has under a name, now and after each change. Moves; not to outlive the runtime. One thread, or
/// fiber, at a time.
class DirectoryWatch {
 public:
  DirectoryWatch(DirectoryWatch &&) noexcept;
  DirectoryWatch &operator=(DirectoryWatch &&) noexcept;
  ~DirectoryWatch();
  /// The first time, all that there is; then waits until that has changed, and is all that there is by then, which may
  /// be nothing. Drives the runtime, or suspends the fiber, meanwhile. After an error it may be called again. A
  /// directory that was started anew hears within seconds of everybody who is there, and has less until then.
  /// kTimedOut: nothing has changed within the deadline, or the directory does not answer. kPeerLost, kRefused: as
  /// find(). kBusy: the directory has too many watches. kCancelled: the runtime is being destroyed.
  Result<std::vector<Place>> next(Deadline deadline);

 private:
  friend Result<DirectoryWatch> watch(Runtime &, std::string_view);
  struct State;
  explicit DirectoryWatch(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// `what` is `dir:NAME`, or `dir:BEGINNING*`: all names that begin so. Nothing is asked yet. kInvalidArgument: it is
/// something else, or nothing can have that name. kNotFound: no directory is named.
Result<DirectoryWatch> watch(Runtime &runtime, std::string_view what);

struct AnnounceOptions {
  std::string kind = "service";                                      ///< in the contact file: what people call it
  std::vector<std::pair<std::string, std::string>> attributes = {};  ///< in the directory: see announce()
  std::chrono::milliseconds lease{10'000};  ///< in the directory: after which one that says nothing more is gone
};

/// What is announced for as long as this lives. Moves; not to outlive the runtime. Dropped, it withdraws without
/// waiting (two seconds at most for a launcher that does not answer): a contact file is removed, unless another service
/// has put its own there; a lease that nobody withdrew runs out.
class Announcement {
 public:
  Announcement(Announcement &&) noexcept;
  Announcement &operator=(Announcement &&) = delete;
  ~Announcement();
  /// How the last renewal in the directory ended; the next one is tried soon. Otherwise always ok. Any thread.
  Status status() const;

 private:
  friend Result<Announcement> announce(Runtime &, std::string_view, const AnnounceOptions &, Deadline);
  struct State;
  explicit Announcement(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Says where the runtime can be reached, and what it offers by now (Runtime::services()): to `file:PATH`, a contact
/// file, to `pmix:NAME`, a name that the job's launcher keeps, or to `dir:NAME`, the directory that the setting
/// `directory` names, which is renewed whenever the runtime is driven; it keeps up to 16 attributes, with names of 1 to
/// 64 letters, digits, `.`, `_`, `-` and `/`, and values of up to 1024 printable ASCII characters. Returns when it is
/// there. kInvalidArgument: `where` is none of these; the runtime does not listen, or offers nothing; a name or
/// attribute cannot be written, and which. kExists: a service that runs keeps this file, or it is something else than a
/// contact file; another process has the launcher's name. kIo. kNotFound: no directory is named. kTimedOut, kPeerLost:
/// directory or launcher are not to be reached. kUnsupported: no launcher with PMIx started this process, or it keeps
/// no names. kNoMemory: a limit of the directory.
Result<Announcement> announce(Runtime &runtime, std::string_view where, const AnnounceOptions &options,
                              Deadline deadline);

}  // namespace nssi

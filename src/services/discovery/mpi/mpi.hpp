// SPDX-License-Identifier: BSD-3-Clause
// Finding services from within an MPI job. A library of its own (nessie_contact_mpi), because it is linked to MPI.
// MPI must be initialised, at a thread level that allows calls from the calling thread: kUnsupported otherwise.
#pragma once

#include <services/discovery/contact/locate.hpp>

#include <mpi.h>

#include <functional>
#include <string>

namespace nessie::service::mpi {

using Finder = std::function<Result<std::vector<Found>>()>;

/// `find` is called by process `root` of `comm` (an intracommunicator) only; all get what it found, or its error: a job
/// of ten thousand processes asks the file system, or the directory, once. Collective over `comm`, in the same order as
/// other collective calls on it. `deadline` is about the other processes, and later than the one that `find` has.
/// kTimedOut: they have not called, or `root` has not found it; the collective operation goes on, and nothing else
/// collective may be called on `comm` any more. kInvalidArgument: `comm` has no process `root`.
Result<std::vector<Found>> find_together(MPI_Comm comm, int root, const Finder &find, Deadline deadline);

/// A name that the launcher's name server keeps (MPI-4.1, section 11.9.4); Open MPI's, through PMIx, serves all who
/// were started by the same mpiexec. Moves. Dropped, it is withdrawn, unless MPI was finalised before. One name, one
/// publisher: Open MPI 4 takes a second one without a word, and then finds neither.
class PublishedName {
 public:
  /// kTooLarge: MPI's names for ports (MPI_MAX_PORT_NAME) are shorter than `url`. kExists, kUnsupported: the name
  /// server has the name, or there is none.
  static Result<PublishedName> publish(std::string name, std::string url);
  PublishedName(PublishedName &&other) noexcept;
  PublishedName &operator=(PublishedName &&) = delete;
  ~PublishedName();

 private:
  PublishedName(std::string name, std::string url) : name_(std::move(name)), url_(std::move(url)) {}
  std::string name_, url_;  ///< empty: moved from
};

/// Who published the name; waits for it. kTimedOut: nobody has. kBadMessage: what it is published with is no URL.
Result<Found> find_published(const std::string &name, Deadline deadline, const Pause &pause);

}  // namespace nessie::service::mpi

// SPDX-License-Identifier: BSD-3-Clause
// Places in an MPI job, for processes that mpiexec did not start: the members of a crew are forked, whatever transport
// they use. What makes a process one of a job's is its environment. So mpiexec starts shells, which write theirs down
// and wait; a forked process that takes it on is that rank.
#pragma once

#include "child.hpp"

#include <nessie/result.hpp>

#include <memory>
#include <string>
#include <vector>

namespace bench {

class Ranks {
 public:
  /// Starts a job of so many, under Open MPI. kIo, with what mpiexec said: it cannot be started.
  static nessie::Result<std::unique_ptr<Ranks>> open(int count);
  /// Ends the job. Its ranks should have left MPI.
  ~Ranks();
  Ranks(const Ranks &) = delete;
  /// The calling process, which has not used MPI, is that rank from now on.
  void become(int rank) const;

 private:
  Ranks() = default;
  nessie::Status start(int count);
  nessie::Status await(int count);
  nessie::Error failed(const std::string &why) const;

  std::string folder_;
  int end_ = -1;  ///< the shells wait until nobody holds this pipe open for writing
  std::unique_ptr<Partner> mpiexec_;
  std::vector<std::vector<std::string>> environments_;  ///< by rank
};

}  // namespace bench

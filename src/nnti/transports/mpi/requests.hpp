// SPDX-License-Identifier: BSD-3-Clause
// Requests of MPI that are under way, and what they are about.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <vector>

namespace nnti::mpi {

/// What a request is about. Stays in place until the request is over.
struct Work {
  enum class Kind { kSend, kChunk };
  explicit Work(Kind what) : kind(what) {}
  Kind kind;
};

class RequestSet {
 public:
  struct Finished {
    Work *work;
    int error;  ///< of MPI; MPI_SUCCESS
    bool cancelled;
    int size_bytes;  ///< of what was received
  };

  void add(MPI_Request request, Work &work) {
    requests_.push_back(request);
    works_.push_back(&work);
  }
  bool empty() const { return requests_.empty(); }
  /// Appends what is over to `finished`; returns how many.
  std::size_t poll(std::vector<Finished> &finished);
  /// Takes a receive back, unless it is too late. It is over, in either case, in some later poll().
  void cancel(const Work &work);

 private:
  void remove(std::size_t index);

  std::vector<MPI_Request> requests_;
  std::vector<Work *> works_;
  std::vector<int> indices_;
  std::vector<MPI_Status> statuses_;
};

}  // namespace nnti::mpi

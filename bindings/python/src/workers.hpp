// SPDX-License-Identifier: BSD-3-Clause
// Requests on their way to the threads of Python's that carry them out, of each caller one in turn. The threads are
// made by Python, one when the last one that was idle gets a request: there is one to take the next. Of eight and more
// an eighth is for callers who have fewer than that: whose handlers never end takes threads from his like, not from
// them.
#pragma once

#include "desk.hpp"

#include <nssi/drive/shared_queues.hpp>

#include <condition_variable>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>

namespace nessie_python {

class Workers {
 public:
  struct Job {
    std::shared_ptr<Desk> desk;
    py::object *handler = nullptr;  ///< the runtime's
  };

  void set_most(std::size_t most) { most_ = most; }
  /// From a fiber, without the GIL.
  void give(Job job, nssi::PeerId caller);
  /// The next job that somebody still waits for, for a worker; none: the runtime is closed, or its process has forked
  /// this one. With the GIL.
  std::optional<Job> next();
  /// A worker has carried its job out, and leaves the desk.
  void finish(Desk &desk);
  /// Whether nobody is left to take the next one, and there may be another worker, which the caller starts.
  bool claim_another();
  void close();

 private:
  std::optional<Job> pick();
  void count(std::uint64_t caller, int more);

  const Origin origin_;
  std::mutex mutex_;
  std::condition_variable changed_;
  nssi::SharedQueues<Job> jobs_;
  std::map<std::uint64_t, std::size_t> busy_;  ///< with whose requests, how many
  std::size_t all_busy_ = 0;
  std::size_t most_ = 0, count_ = 1, idle_ = 0;  ///< the first one is started with the runtime
  bool closed_ = false;
};

void bind_workers(py::module_ &module);

}  // namespace nessie_python

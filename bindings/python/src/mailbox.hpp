// SPDX-License-Identifier: BSD-3-Clause
// How calls that are over are told to an event loop, which sleeps on a descriptor.
#pragma once

#include "errors.hpp"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace nessie_python {

class Mailbox {
 public:
  /// Io: the system has no descriptors left.
  Mailbox();
  ~Mailbox();
  Mailbox(const Mailbox &) = delete;
  /// Readable while there is something.
  int fileno() const { return fd_; }
  /// Any thread, without the GIL.
  void put(std::uint64_t token);
  std::vector<std::uint64_t> take_all();

 private:
  int fd_;
  std::mutex mutex_;
  std::vector<std::uint64_t> tokens_;
};

/// Whether a call is over, for threads that do not drive.
class Completion {
 public:
  void complete();
  bool is_done() const { return done_.load(std::memory_order_acquire); }
  /// Puts `token` into `mailbox` when it is over; at once if it is.
  void tell(std::shared_ptr<Mailbox> mailbox, std::uint64_t token);
  void wait(Deadline deadline);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<bool> done_{false};
  std::vector<std::pair<std::shared_ptr<Mailbox>, std::uint64_t>> told_;
};

void bind_mailbox(py::module_ &module);

}  // namespace nessie_python

// SPDX-License-Identifier: BSD-3-Clause
// Which process something was made in.
#pragma once

#include <unistd.h>

#include <atomic>
#include <memory>
#include <new>
#include <utility>

namespace nessie {

/// A child of fork() has a copy of its parent's memory, but none of its threads; what is shared, and what is connected,
/// stays the parent's. So whatever would change it, or wait for a thread, first asks whether it is at home.
class Birth {
 public:
  /// False: in a child of the process that made this.
  bool was_here() const { return process_ == ::getpid(); }

 private:
  pid_t process_ = ::getpid();
};

/// What was left, so that whoever looks for leaks sees that it is meant.
struct Left {
  const std::shared_ptr<void> object;
  const Left *before;
};
inline std::atomic<const Left *> last_left{nullptr};

/// What `object` points to is never destroyed: it is the parent's, or a thread's that does not end.
inline void leave(std::shared_ptr<void> object) noexcept {
  auto *left = new (std::nothrow) Left{std::move(object), last_left.load()};
  while (left != nullptr && !last_left.compare_exchange_weak(left->before, left)) {}
}

}  // namespace nessie

// SPDX-License-Identifier: BSD-3-Clause
// Which process something was made in.
#pragma once

#include <unistd.h>

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

/// What `object` points to is never destroyed: it is the parent's.
template <class T> void leave(std::shared_ptr<T> object) noexcept {
  (void)new (std::nothrow) std::shared_ptr<T>(std::move(object));
}

}  // namespace nessie

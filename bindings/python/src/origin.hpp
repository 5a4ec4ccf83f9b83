// SPDX-License-Identifier: BSD-3-Clause
// Which process something was made in: a child of os.fork() has it, too, but it is its parent's.
#pragma once

#include "errors.hpp"

#include <pthread.h>

namespace nessie_python {

/// As nessie::Birth; costs nothing to ask.
class Origin {
 public:
  /// False: in a child of the process that made this, which has none of the threads that may be inside.
  bool is_here() const { return forks_ == forks(); }
  /// InvalidArgument: it is not here.
  void check_here() const {
    if (!is_here()) raise(Code::kInvalidArgument, "this runtime is of the process that forked this one: open one here");
  }

 private:
  /// Of this process, and of those that it comes from.
  static unsigned &forks() {
    static unsigned count = 0;
    [[maybe_unused]] static const int registered = ::pthread_atfork(nullptr, nullptr, [] { ++count; });
    return count;
  }

  unsigned forks_ = forks();
};

/// What a child must not take apart, for it may be locked, or waited for, by threads that it has not: it stays for
/// ever.
template <class T> void leave_behind(T &thing) { (void)new T(std::move(thing)); }

}  // namespace nessie_python

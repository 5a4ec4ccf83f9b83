// SPDX-License-Identifier: BSD-3-Clause
// SIGHUP, which daemons take for: read your configuration anew.
#pragma once

#include <nessie/result.hpp>

#include <signal.h>

#include <utility>

namespace nssi {

/// Who hears of it.
class HangupSink {
 public:
  /// In the signal's handler, in any thread.
  virtual void on_hangup() = 0;

 protected:
  ~HangupSink() = default;
};

/// While it lives, the sink hears of SIGHUP. One a process.
class Hangup {
 public:
  /// kExists: another runtime does it.
  static nessie::Result<Hangup> watch(HangupSink &sink);
  Hangup(Hangup &&other) noexcept : before_(other.before_), is_mine_(std::exchange(other.is_mine_, false)) {}
  Hangup &operator=(Hangup &&other) noexcept {
    std::swap(before_, other.before_);
    std::swap(is_mine_, other.is_mine_);
    return *this;
  }
  ~Hangup();

 private:
  Hangup() = default;
  struct sigaction before_ {};
  bool is_mine_ = false;
};

}  // namespace nssi

// SPDX-License-Identifier: BSD-3-Clause
// SIGHUP, which daemons take for: read your configuration anew.
#pragma once

#include <nessie/result.hpp>

#include <signal.h>

#include <utility>

namespace nssi {

class Engine;

/// While it lives, SIGHUP calls the engine's reload(). One a process.
class Hangup {
 public:
  /// kExists: another engine does it.
  static nessie::Result<Hangup> watch(Engine &engine);
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

// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/size_limit.hpp"

#include <cerrno>

namespace nnti {
namespace {

sigset_t only_the_signal() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGXFSZ);
  return set;
}

bool is_pending() {
  sigset_t pending;
  return sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
}

}  // namespace

SizeLimitIsError::SizeLimitIsError() {
  const auto signal = only_the_signal();
  pthread_sigmask(SIG_BLOCK, &signal, &before_);
  was_pending_ = is_pending();
}

SizeLimitIsError::~SizeLimitIsError() {
  const int error = errno;
  const auto signal = only_the_signal();
  const timespec no_time{};
  if (!was_pending_ && is_pending()) sigtimedwait(&signal, nullptr, &no_time);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  errno = error;
}

}  // namespace nnti

// SPDX-License-Identifier: BSD-3-Clause
#include "base/size_limit.hpp"

#include <base/say.h>

#include <cerrno>

namespace nessie {

SizeLimitIsError::SizeLimitIsError() {
  sigset_t signal;
  sigemptyset(&signal);
  sigaddset(&signal, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &signal, &mask_before_);
  sigpending(&pending_before_);
}

SizeLimitIsError::~SizeLimitIsError() {
  const int error = errno;
  nessie_take_back(SIGXFSZ, &pending_before_);
  pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
  errno = error;
}

}  // namespace nessie

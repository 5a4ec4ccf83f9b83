// SPDX-License-Identifier: BSD-3-Clause
// The limit on the size of files (RLIMIT_FSIZE) counts memory that has a descriptor as well.
#pragma once

#include <csignal>

namespace nessie {

/// While it lives, a file that this thread would make longer than the limit allows is an error, EFBIG, and not a signal
/// that ends the process.
class SizeLimitIsError {
 public:
  SizeLimitIsError();
  ~SizeLimitIsError();
  SizeLimitIsError(const SizeLimitIsError &) = delete;
  SizeLimitIsError &operator=(const SizeLimitIsError &) = delete;

 private:
  sigset_t mask_before_, pending_before_;
};

}  // namespace nessie

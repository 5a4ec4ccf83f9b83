// SPDX-License-Identifier: BSD-3-Clause
// How many descriptors a process may have.
#pragma once

#include <sys/resource.h>

#include <algorithm>

namespace nessie {

/// Lets this process, and what it starts, have 65536 of them, or as many as the hard limit says: for programs that
/// serve, as the peers and registered buffers of a node take descriptors. A library leaves the limit as its program
/// wants it: select(2) cannot name those beyond 1023. Not more: libraries that start programs close all that may be.
inline void raise_descriptor_limit() {
  constexpr rlim_t kEnough = 65536;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= kEnough) return;
  limit.rlim_cur = std::min(limit.rlim_max, kEnough);
  (void)::setrlimit(RLIMIT_NOFILE, &limit);  // it stays as it was
}

}  // namespace nessie

// SPDX-License-Identifier: BSD-3-Clause
// Descriptors and limits of a process.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>

#include <algorithm>

namespace nessie {

/// At the very beginning of a program: if it was started with standard streams closed, their numbers are taken, so that
/// nothing that is opened later is written to by mistake. What it starts has them closed as well.
inline void occupy_closed_standard_streams() {
  for (int fd = 0; fd <= 2; ++fd)
    if (::fcntl(fd, F_GETFD) < 0) (void)::open("/dev/null", O_RDWR | O_CLOEXEC);  // gets the lowest free number: fd
}

/// Raises this process's own limits as far as it may, for programs that serve others and hold what is theirs.
inline void raise_limits() {
  for (const auto resource : {RLIMIT_FSIZE, RLIMIT_AS, RLIMIT_DATA, RLIMIT_MEMLOCK, RLIMIT_CPU}) {
    rlimit limit{};
    if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == limit.rlim_max) continue;
    limit.rlim_cur = limit.rlim_max;
    (void)::setrlimit(resource, &limit);
  }
}

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

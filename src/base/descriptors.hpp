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

/// How far this process may raise a limit of its own: to the hard one, or any value if it is root's.
inline rlim_t highest_limit(__rlimit_resource resource) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0) return RLIM_INFINITY;
  const rlimit all{limit.rlim_cur, RLIM_INFINITY};
  if (::setrlimit(resource, &all) != 0) return limit.rlim_max;
  (void)::setrlimit(resource, &limit);
  return RLIM_INFINITY;
}

/// Raises a limit of this process to what is wanted, or as far as it may: only root may go beyond the hard limit.
inline void raise_limit(__rlimit_resource resource, rlim_t wanted) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur >= wanted) return;
  const rlimit all{wanted, std::max(limit.rlim_max, wanted)}, allowed{std::min(limit.rlim_max, wanted), limit.rlim_max};
  if (::setrlimit(resource, &all) != 0) (void)::setrlimit(resource, &allowed);
}

/// Raises this process's own limits as far as it may, for programs that serve others and hold what is theirs.
inline void raise_limits() {
  for (const auto resource : {RLIMIT_FSIZE, RLIMIT_AS, RLIMIT_DATA, RLIMIT_MEMLOCK, RLIMIT_CPU, RLIMIT_NPROC})
    raise_limit(resource, RLIM_INFINITY);
}

/// Lets this process, and what it starts, have 65536 of them, or as many as it may: for programs that serve, as the
/// peers and registered buffers of a node take descriptors. A library leaves the limit as its program wants it:
/// select(2) cannot name those beyond 1023. Not more: libraries that start programs close all that may be.
inline void raise_descriptor_limit() { raise_limit(RLIMIT_NOFILE, 65536); }

}  // namespace nessie

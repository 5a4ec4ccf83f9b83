// SPDX-License-Identifier: BSD-3-Clause
#include "base/fence.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace nessie {
namespace {

long membarrier(int command) { return ::syscall(SYS_membarrier, command, 0, 0); }

}  // namespace

bool join_asymmetric_fences() {
#ifdef __SANITIZE_THREAD__
  return false;  // it would see races where the kernel orders
#else
  // Once for each process: a fork inherits it, and exec ends it.
  static const bool joined = membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) == 0;
  return joined;
#endif
}

void heavy_fence() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (join_asymmetric_fences()) membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
}

}  // namespace nessie

// SPDX-License-Identifier: BSD-3-Clause
// Two threads, of one process or of two, that each write one word and then read the other's must not both miss the
// other's write: a sender that publishes a message and looks whether the receiver sleeps, a receiver that falls asleep
// and looks for messages.
//
// Design notes. That takes a full fence on both sides, and a fence on the sender's makes every message wait until the
// cache line before it has come over. So the rare side pays for both: membarrier(2) makes all processors that run a
// registered process pass a fence, and the frequent side needs none. Where the kernel lacks it, or one side does, both
// sides fence as usual.
#pragma once

#include <atomic>

namespace nessie {

/// Registers this process, once, to be reached by heavy_fence() of others. False: the kernel cannot. Takes no time
/// while the process has one thread; afterwards the kernel waits for all processors, some 10 ms.
bool join_asymmetric_fences();

/// The frequent side's. `asymmetric`: both processes have joined, and the other side uses heavy_fence().
inline void light_fence(bool asymmetric) {
  if (asymmetric)
    std::atomic_signal_fence(std::memory_order_seq_cst);
  else
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

/// The rare side's: a fence here, and on every processor that runs a process that has joined.
void heavy_fence();

}  // namespace nessie

// SPDX-License-Identifier: BSD-3-Clause
// Native PnetCDF's table of open files, and MPI-IO's ways to open one, are not safe for several threads. Threads take
// turns where they open or close a native file that is their process's alone, so that who has the turn waits for nobody
// but the file system. Native files of several processes are opened and closed without a turn: there a process waits
// for others, whose threads may have their turns in another order.
#pragma once

#include <mutex>

namespace interpose {

class NativeTurn {
 public:
  /// Waits for the other threads' turns.
  NativeTurn();
  /// Keeps descriptors in reserve again.
  ~NativeTurn();
  NativeTurn(const NativeTurn &) = delete;
  NativeTurn &operator=(const NativeTurn &) = delete;

  /// Leaves PnetCDF the process's reserve of descriptors: as many as it has open at once while it opens a file, so that
  /// a process that is short of them can open what costs none natively. False: the reserve is not there.
  bool lend_reserve();
  /// Others may have their turn, because here a process is about to wait for others. What was lent stays lent.
  void let_others();

  /// In a child of fork(): whoever had the turn is not there.
  static void begin_in_child();

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace interpose

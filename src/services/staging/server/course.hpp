// SPDX-License-Identifier: BSD-3-Clause
// How it goes with the drain of a file: whether it can be written, and what waits until it can. Progress thread, but
// for what is marked.
#pragma once

#include <services/staging/server/page_cache.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>

namespace staging {

/// What came of a page: native PnetCDF's code, and the system's reason, if it can be known.
struct PageOutcome {
  int nc_error = 0, system_error = 0;
  bool was_tried = true;
};

struct Course {
  enum class Stage {
    kFine,
    kWaits,    ///< something could not be written: all that the file has waits
    kTries,    ///< the first of what waits is tried again
    kGoesOn,   ///< that was written: what waits leaves in its order
    kGivesUp,  ///< the user's patience has ended: what cannot be written is given up at once, until something can
  };
  Stage stage = Stage::kFine;
  std::size_t in_flight = 0;            ///< tasks of the I/O thread
  std::atomic<bool> is_stopped{false};  ///< by the I/O thread: one has failed, and those behind it are not tried
  std::map<std::uint64_t, std::unique_ptr<Page>> waiting;  ///< taken out of the cache, in the order of that
  double since_s = 0;                                      ///< the first failure since something was written; 0: none
  bool has_written = false;                                ///< something, since it gives up
  std::chrono::milliseconds pause{0};                      ///< before it is tried again
  PageOutcome why;

  /// Whether pages that are in the cache stay there.
  bool holds_back() const { return !waiting.empty() || stage == Stage::kWaits || stage == Stage::kTries; }
  /// What waits may leave.
  bool lets_go() const { return stage == Stage::kGoesOn || stage == Stage::kGivesUp; }
};

}  // namespace staging

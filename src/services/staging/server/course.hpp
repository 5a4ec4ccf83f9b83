// SPDX-License-Identifier: BSD-3-Clause
// How it goes with the drain of a file: whether it can be written, and what waits until it can. Progress thread, but
// for what is marked.
#pragma once

#include <service/log/store.hpp>
#include <services/staging/server/page_cache.hpp>

#include <atomic>
#include <chrono>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>

namespace staging {

/// What came of a page, or of another native call: native PnetCDF's code, and the system's reason, if it can be known.
struct PageOutcome {
  int nc_error = 0, system_error = 0;
  bool was_tried = true;
  bool is_damaged = false;    ///< what is in the page is not what was put there, so that it was not written
  bool is_elsewhere = false;  ///< of one that is damaged: what was put there may be found elsewhere
  bool is_final = false;      ///< of what is no page: native PnetCDF cannot do it once more
};

/// Pages in the order of a file, those of one place in the order in which they were taken out of the cache.
struct PagePlace {
  std::int32_t varid = 0;
  std::int64_t index = 0;
  std::uint64_t number = 0;
  auto operator<=>(const PagePlace &) const = default;  // NOLINT(modernize-use-nullptr): of what the compiler makes
  bool is_same(const PagePlace &other) const { return varid == other.varid && index == other.index; }
};

inline PagePlace place_of(const Page &page) { return {page.owner().variable.varid, page.index(), page.number()}; }

/// A page that is not in memory, or is on its way out of it or back.
struct SpilledPage {
  std::unique_ptr<Page> page;
  nessie::service::LogRange at;
  bool is_busy = false;
};

/// What fails, and is being tried again.
struct Trouble {
  PageOutcome why;
  double since_s = 0;
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
  std::map<PagePlace, SpilledPage> spilled;

  /// Whether pages that are in the cache stay there.
  bool holds_back() const { return !waiting.empty() || stage == Stage::kWaits || stage == Stage::kTries; }
  /// What was spilled of the page's place, and must come to the file before it: the oldest, or the end.
  auto before(const Page &page) {
    const auto place = place_of(page);
    const auto found = spilled.lower_bound({place.varid, place.index, 0});
    const bool is_older = found != spilled.end() && found->first.is_same(place) &&
                          (page.is_attached() || found->first.number < place.number);
    return is_older ? found : spilled.end();
  }
  bool has_before(const Page &page) { return before(page) != spilled.end(); }
  /// What waits may leave.
  bool lets_go() const { return stage == Stage::kGoesOn || stage == Stage::kGivesUp; }
};

}  // namespace staging

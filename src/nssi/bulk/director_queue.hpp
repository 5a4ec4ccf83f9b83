// SPDX-License-Identifier: BSD-3-Clause
// Whose turn it is: the order and the budgets of a Director, without threads or clocks.
#pragma once

#include <base/clock.hpp>
#include <nssi/director.hpp>

#include <map>
#include <optional>

namespace nssi {

using nessie::Clock;

/// Bytes per time: as many as a bucket holds at once, which fills at that rate. It may be overdrawn.
class TokenBucket {
 public:
  /// `bytes_per_second` 0: there is always room.
  TokenBucket(std::uint64_t bytes_per_second, std::uint64_t burst_bytes)
      : bytes_per_second_(bytes_per_second), burst_bytes_(burst_bytes) {}
  /// When it holds so much, or is full.
  Clock::time_point ready_at(std::uint64_t size_bytes) const;
  void take(std::uint64_t size_bytes, Clock::time_point now);

 private:
  Clock::duration time_of(std::uint64_t size_bytes) const;

  const std::uint64_t bytes_per_second_, burst_bytes_;
  Clock::time_point full_at_;
};

class DirectorQueue {
 public:
  explicit DirectorQueue(DirectorOptions options);
  /// The ask's number. It is `since` its own time.
  std::uint64_t add(Ask ask);
  void remove(std::uint64_t number) { asks_.erase(number); }
  /// The one whose turn it is, which is taken out, and of the budgets.
  std::optional<std::uint64_t> next(Clock::time_point now);
  void release(std::uint64_t size_bytes) { used_bytes_ -= size_bytes; }
  /// When next() is to be asked again, if nothing is added, removed or released until then. After it gave nothing.
  Deadline next_time() const { return next_time_; }
  std::size_t waiting() const { return asks_.size(); }
  std::uint64_t used_bytes() const { return used_bytes_; }

 private:
  const Ask &first(Clock::time_point now) const;
  Deadline next_overdue(const Ask &ask) const;
  bool has_memory_for(std::uint64_t size_bytes) const;

  DirectorOptions options_;
  TokenBucket bucket_;
  std::map<std::uint64_t, Ask> asks_;  ///< by age
  std::uint64_t last_number_ = 0, used_bytes_ = 0;
  Deadline next_time_ = Deadline::never();
};

}  // namespace nssi

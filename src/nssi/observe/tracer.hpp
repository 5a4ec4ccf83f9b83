// SPDX-License-Identifier: BSD-3-Clause
// Writes what becomes of some calls as events of Chrome's trace format, which chrome://tracing and Perfetto show. Used
// by the driver.
//
// Design notes. One file a process, an array without its end: whole events are appended, at the latest after 50 ms
// while somebody drives, so that the file of a process that was killed can be loaded. Times are those of the node's
// monotonic clock, which is the same for all its processes. What overlaps cannot be shown in one row: each call and
// each request in progress has a row of its own, used again by the next one. `nessie trace` puts the files together.
#pragma once

#include <base/clock.hpp>
#include <nessie/result.hpp>
#include <nssi/wire/coarse_clock.hpp>
#include <nssi/wire/wire.hpp>

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>

namespace nssi {

using nessie::Clock;

/// What goes on at some place belongs to that span of that trace. `trace` 0: to none.
struct TraceContext {
  std::uint64_t trace = 0, span = 0;
  std::uint64_t row = 0;  ///< where the span is shown; 0: in another process
};

/// A call or a request that is traced.
struct TracedWork {
  TraceContext here;
  TraceContext parent;
  Clock::time_point arrived, began, ended;

  explicit operator bool() const { return here.trace != 0; }
  wire::Trace for_wire() const { return {here.trace, here.span}; }
};

class Tracer {
 public:
  enum class RowKind { kCalls, kRequests };
  struct Span {
    std::string_view category, name;
    Clock::time_point from, to;
    TraceContext parent = {};
    std::uint64_t span = 0;   ///< 0: its parent's
    std::int64_t bytes = -1;  ///< -1: it moves none
    std::string_view error = {};
  };

  /// Makes the folder, if need be, and a file in it. `every`: of so many calls that belong to no trace, one begins one.
  /// kIo, with the cause.
  static nessie::Result<std::unique_ptr<Tracer>> open(const std::string &folder, std::uint64_t every);
  ~Tracer();
  Tracer(const Tracer &) = delete;

  /// A new trace; none for most, as `every` says.
  TraceContext sample() {
    if (--until_next_ != 0) return {};
    until_next_ = every_;
    return {new_id(), 0, 0};
  }
  std::uint64_t new_id() { return ids_ + ++used_ids_; }
  std::uint64_t row(RowKind kind, std::size_t number);

  void write(std::uint64_t row, const TraceContext &here, const Span &span);
  /// An arrow between spans that are shown in different rows; both ends name it alike.
  void begin_arrow(std::string_view name, std::uint64_t id, std::uint64_t row, Clock::time_point at);
  void end_arrow(std::string_view name, std::uint64_t id, std::uint64_t row, Clock::time_point at);

  void flush();
  nessie::Deadline next_flush() const;
  void flush_if_due() {
    if (has_passed(next_flush())) flush();
  }

 private:
  Tracer(int fd, std::uint64_t every, std::uint64_t first_row);
  void write_head();
  void write_arrow(std::string_view name, std::string_view end, std::uint64_t id, std::uint64_t row,
                   Clock::time_point at);
  void added();

  const int fd_, pid_;
  const std::uint64_t every_, first_row_, ids_;
  std::uint64_t used_ids_ = 0, until_next_ = 1;
  std::set<std::uint64_t> named_rows_;
  std::string buffer_;
  Clock::time_point oldest_{};  ///< in the buffer
  bool is_broken_ = false;
};

}  // namespace nssi

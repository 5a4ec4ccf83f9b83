// SPDX-License-Identifier: BSD-3-Clause
// The processes of a workload that needs several at once (threads, for a transport within a process). They start
// together and leave what they measured on a board in memory that all of them share.
#pragma once

#include "timing.hpp"

#include <nessie/result.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

/// What was measured under a mode of the report, for a size.
struct Figure {
  std::array<char, 48> mode{};
  std::uint64_t size_bytes = 0;
  double value = 0;
};

/// What one member leaves for the others, and for who started it. Written by that member alone.
class Lane {
 public:
  void leave(std::string_view mode, std::uint64_t size_bytes, double value);
  std::span<const Figure> figures() const { return std::span(figures_).first(count_); }

  Tally tally;
  double us = 0;                     ///< of who measures one time only
  std::array<char, 8192> address{};  ///< where it can be reached: a URL, or bytes that a library made
  std::atomic<std::uint32_t> address_bytes{0};
  std::array<char, 1024> error{};

 private:
  std::array<Figure, 128> figures_{};
  std::size_t count_ = 0;
};

/// Memory shared by a crew.
class Board {
 public:
  explicit Board(int members);
  ~Board();
  Board(const Board &) = delete;

  bool valid() const { return head_ != nullptr; }
  Lane &lane(int member) { return lanes()[member]; }
  /// A meeting: a member says that it has come, and may go on when `count` members have come. A member's meetings are
  /// numbered from 1.
  void arrive();
  bool all_here(int count, int meeting) const;
  /// Waits until `count` members have come. False: the crew was stopped, or somebody did not come within a minute.
  bool meet(int count, int meeting);
  /// Tells everybody to end: something went wrong, or the work is done.
  void stop();
  bool stopped() const;

  void publish_address(int member, std::string_view address);
  /// Waits for another member's address; empty if the crew was stopped or a minute passed.
  std::string address_of(int member);

 private:
  struct Head;
  Lane *lanes();
  bool wait_until(const std::function<bool()> &come) const;

  Head *head_ = nullptr;
  std::size_t size_bytes_;
};

/// kRanks: processes of one MPI job (ranks.hpp).
enum class Housing { kProcesses, kThreads, kRanks };
/// Where members live whose endpoints use that transport.
Housing housing_for(std::string_view transport);

/// kUnsupported: members whose endpoints use that transport are not processes that were merely forked.
nessie::Status check_forked(std::string_view transport);

/// What one member does. Processes do not share anything but the board.
using Duty = std::function<nessie::Status(Board &board, int member)>;

/// Runs `duty` for members 0 to members-1, and returns their board when all have ended. The first error of a member
/// stops the others. kTimedOut: they were ended after `limit` (threads end by themselves: they look at stopped()).
/// kIo: no MPI job could be started for them.
nessie::Result<std::unique_ptr<Board>> run_crew(int members, Housing housing, std::chrono::seconds limit,
                                                const Duty &duty);

/// The calls that the members 0 to count-1 tallied, per second, from the first's begin to the last's end.
double calls_per_s(Board &board, int count);
/// Of what the members 0 to count-1 measured, the time in the middle.
double median_us(Board &board, int count);

}  // namespace bench

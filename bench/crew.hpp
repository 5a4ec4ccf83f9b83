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
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

/// What one member leaves for the others, and for who started it. Written by that member alone.
struct Lane {
  Tally tally;
  std::array<double, 128> values{};
  std::array<char, 8192> address{};  ///< where it can be reached: a URL, or bytes that a library made
  std::atomic<std::uint32_t> address_bytes{0};
  std::array<char, 1024> error{};
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

/// Runs `duty` for members 0 to members-1 of the board, and returns when all have ended. The first error of a member
/// stops the others. kTimedOut: they were ended after `limit` (threads end by themselves: they look at stopped()).
/// kIo: no MPI job could be started for them.
nessie::Status run_crew(Board &board, int members, Housing housing, std::chrono::seconds limit, const Duty &duty);

/// The calls that the members 0 to count-1 tallied, per second, from the first's begin to the last's end.
double calls_per_s(Board &board, int count);
/// Of values[index] of the members 0 to count-1.
double median_value(Board &board, int count, std::size_t index);

}  // namespace bench

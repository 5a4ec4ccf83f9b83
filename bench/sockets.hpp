// SPDX-License-Identifier: BSD-3-Clause
// What the kernel takes to move a message between two processes, and to wake one up.
#pragma once

#include "report.hpp"

#include <nessie/result.hpp>

#include <cstdint>
#include <vector>

namespace bench {

enum class SocketKind { kUnix, kTcpLoopback };
enum class SocketWait { kPolls, kSleeps };

/// Microseconds of a message and its echo, for each size, through a pair of connected sockets.
nessie::Result<FiguresBySize> socket_round_trips(SocketKind kind, SocketWait wait,
                                                 const std::vector<std::uint64_t> &sizes);
/// Of a message and an answer of one byte, polling.
nessie::Result<FiguresBySize> socket_transfers(SocketKind kind, const std::vector<std::uint64_t> &sizes);

enum class WakeUp { kEventfd, kFutex };
/// Microseconds until a sleeping process on the other core was woken up, and woke us in turn.
nessie::Result<double> wake_up_round_trip(WakeUp how);

}  // namespace bench

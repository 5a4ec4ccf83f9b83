// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "nnti/channel/wire.hpp"

#include <base/config.hpp>

#include <chrono>

namespace nnti::channel {

using Clock = nessie::Clock;
using Time = Clock::time_point;
using Duration = Clock::duration;
inline constexpr Time kNever = Time::max();

/// A moment so long after `time`; kNever for what is too far to tell.
inline Time after(Time time, Duration duration) { return duration < kNever - time ? time + duration : kNever; }

struct Settings {
  std::chrono::milliseconds reconnect{30'000};     ///< nnti.reconnect: how long a broken connection may take to mend
  std::chrono::milliseconds heartbeat{1'000};      ///< nnti.heartbeat: silence after which a lossy peer is asked
  std::chrono::milliseconds peer_timeout{30'000};  ///< nnti.peer_timeout: silence after which it is lost; 0: never
  Limits limits{1024, 1 << 20};                    ///< nnti.channel.messages, nnti.channel.bytes

  /// kInvalidArgument, naming the setting.
  static Result<Settings> load(const nessie::Config &config);
};

}  // namespace nnti::channel

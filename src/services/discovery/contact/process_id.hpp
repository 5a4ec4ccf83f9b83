// SPDX-License-Identifier: BSD-3-Clause
// Which process, of which machine, since when: tells a process from a later one that got its number.
#pragma once

#include <cstdint>
#include <string>

namespace nessie::service {

struct ProcessId {
  std::string host;             ///< what the machine calls itself
  std::string boot;             ///< which start of it: /proc/sys/kernel/random/boot_id
  std::uint64_t pid_space = 0;  ///< whose numbers the pid is one of: containers have their own; 0: not known
  std::int64_t pid = 0;
  std::uint64_t started = 0;  ///< in clock ticks since the machine's start; 0: not known
  bool operator==(const ProcessId &) const = default;
};

ProcessId this_process();

/// kUnknown: it is of another machine or container, where we cannot look.
enum class Life { kRuns, kGone, kUnknown };

struct Finding {
  Life life = Life::kUnknown;
  std::string why;  ///< of kGone: "process 4711 has ended"
};

Finding look_for(const ProcessId &process);

}  // namespace nessie::service

// SPDX-License-Identifier: BSD-3-Clause
#include "services/discovery/contact/process_id.hpp"

#include <base/file.hpp>
#include <base/host.hpp>

#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <sstream>
#include <utility>

namespace nessie::service {
namespace {

std::uint64_t pid_space() {
  struct stat status {};
  return ::stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

struct Stat {
  char state = '?';
  std::uint64_t started = 0;
};

/// proc(5): the program's name, field 2, may hold anything; the state is field 3, the start time field 22.
std::optional<Stat> stat_of(std::int64_t pid) {
  constexpr int kFieldsBetween = 18;
  const auto text = read_file(fmt::format("/proc/{}/stat", pid));
  if (!text.ok()) return std::nullopt;
  std::istringstream fields(text->substr(std::min(text->rfind(')'), text->size() - 1) + 1));
  Stat stat;
  std::string skipped;
  fields >> stat.state;
  for (int i = 0; i < kFieldsBetween; ++i) fields >> skipped;
  return fields >> stat.started ? std::optional(stat) : std::nullopt;
}

Finding look_for_here(const ProcessId &process) {
  const auto gone = [&](const char *what) {
    return Finding{Life::kGone, fmt::format("process {} {}", process.pid, what)};
  };
  if (::kill(static_cast<pid_t>(process.pid), 0) != 0 && errno == ESRCH) return gone("has ended");
  const auto stat = stat_of(process.pid);
  if (!stat) return {Life::kRuns, {}};  // it is there; whose it is, we may not see
  if (stat->state == 'Z' || stat->state == 'X') return gone("has ended");
  if (process.started != 0 && stat->started != process.started)
    return gone("has ended, and another process has its number");
  return {Life::kRuns, {}};
}

}  // namespace

ProcessId this_process() {
  const auto pid = ::getpid();
  const auto stat = stat_of(pid);
  auto boot = boot_id();
  if (boot.empty()) boot = "unknown";
  return {host_name(), std::move(boot), pid_space(), pid, stat ? stat->started : 0};
}

Finding look_for(const ProcessId &process) {
  const auto self = this_process();
  if (process.boot == self.boot) return process.pid_space == self.pid_space ? look_for_here(process) : Finding{};
  if (process.host != self.host) return {};
  return {Life::kGone, fmt::format("{} has been started anew since", process.host)};
}

}  // namespace nessie::service

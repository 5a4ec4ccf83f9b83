// SPDX-License-Identifier: BSD-3-Clause
#include "memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <limits>

namespace nessie::cli {

namespace {

constexpr std::uint64_t kMiB = 1 << 20;

std::uint64_t machine_available_bytes() {
  std::ifstream file("/proc/meminfo");
  std::string name;
  for (std::uint64_t kib = 0; file >> name;) {
    if (name == "MemAvailable:" && file >> kib) return kib * 1024;
  }
  return 1024 * kMiB;
}

std::uint64_t number_in(const char *path, std::uint64_t otherwise) {
  std::ifstream file(path);
  std::uint64_t value = 0;
  return file >> value ? value : otherwise;  // "max" is no number
}

std::uint64_t control_group_available_bytes() {
  constexpr auto kNone = std::numeric_limits<std::uint64_t>::max();
  const auto limit = number_in("/sys/fs/cgroup/memory.max", kNone);
  const auto used = number_in("/sys/fs/cgroup/memory.current", 0);
  return limit == kNone ? kNone : limit - std::min(limit, used);
}

}  // namespace

std::uint64_t available_memory_bytes() { return std::min(machine_available_bytes(), control_group_available_bytes()); }

std::string default_memory_of_each(int servers) {
  const auto share = available_memory_bytes() / 4 / static_cast<std::uint64_t>(std::max(servers, 1));
  return fmt::format("{}M", std::max<std::uint64_t>(share / kMiB, 64));
}

}  // namespace nessie::cli

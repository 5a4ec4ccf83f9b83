// SPDX-License-Identifier: BSD-3-Clause
#include "base/host.hpp"

#include "base/file.hpp"

#include <fmt/format.h>

#include <sys/stat.h>
#include <unistd.h>

#include <array>

namespace nessie {

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 && name[0] != '\0' ? name.data() : "unknown";
}

std::string boot_id() { return first_line_of("/proc/sys/kernel/random/boot_id"); }

const std::string &memory_domain() {
  static const std::string domain = [] {
    std::string boot;
    for (char c : boot_id())
      if (c != '-' && boot.size() < 16) boot += c;
    struct stat network {};
    if (boot.empty() || ::stat("/proc/self/ns/net", &network) != 0) return std::string();
    return fmt::format("{}-{:x}", boot, network.st_ino);
  }();
  return domain;
}

}  // namespace nessie

// SPDX-License-Identifier: BSD-3-Clause
#include "base/host.hpp"

#include "base/file.hpp"

#include <unistd.h>

#include <array>

namespace nessie {

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 && name[0] != '\0' ? name.data() : "unknown";
}

std::string boot_id() { return first_line_of("/proc/sys/kernel/random/boot_id"); }

}  // namespace nessie

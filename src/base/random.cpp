// SPDX-License-Identifier: BSD-3-Clause
#include "base/random.hpp"

#include "base/log.hpp"

#include <sys/random.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace nessie {

void random_bytes(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    auto got = ::getrandom(bytes.data(), bytes.size(), 0);
    if (got > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(got));
    } else if (errno != EINTR) {
      // Without randomness no key of ours is a secret: nothing can safely go on.
      log::error("the system's random source failed: {}", std::strerror(errno));
      std::abort();
    }
  }
}

std::uint64_t random_u64() {
  std::uint64_t value = 0;
  random_bytes(std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

}  // namespace nessie

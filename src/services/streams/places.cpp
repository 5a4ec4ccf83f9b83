// SPDX-License-Identifier: BSD-3-Clause
#include <services/streams/places.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

namespace streams {

std::string contact_folder() {
  const char *runtime = std::getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && *runtime != '\0') return fmt::format("{}/nessie/streams", runtime);
  return fmt::format("/tmp/nessie-{}/streams", ::getuid());
}

}  // namespace streams

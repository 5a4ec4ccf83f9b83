// SPDX-License-Identifier: BSD-3-Clause
// How a command says why it failed.
#pragma once

#include <fmt/format.h>

#include <string_view>

namespace nessie::cli {

/// Returns the command's exit code.
inline int say_failure(std::string_view command, std::string_view why) {
  fmt::print(stderr, "nessie {}: {}\n", command, why);
  return 1;
}

}  // namespace nessie::cli

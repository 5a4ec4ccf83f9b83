// SPDX-License-Identifier: BSD-3-Clause
// What the ways to say where a service is begin with, beside a URL.
#pragma once

#include <nessie/result.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace nessie::service {

inline constexpr std::string_view kFile = "file:", kEnvironment = "env:", kLauncher = "pmix:", kDirectory = "dir:";

/// Whether it says where a service is, and not just its name.
inline bool is_place(std::string_view text) {
  const auto begins_so = [&](std::string_view scheme) { return text.starts_with(scheme); };
  return text.find("://") != std::string_view::npos ||
         std::ranges::any_of(std::array{kFile, kEnvironment, kLauncher, kDirectory}, begins_so);
}

/// kInvalidArgument: no service can be announced there.
inline Status check_announced(std::string_view place) {
  for (const auto scheme : {kFile, kLauncher, kDirectory})
    if (place.starts_with(scheme) && place.size() > scheme.size()) return {};
  return Error{Code::kInvalidArgument,
               fmt::format("a service is announced to file:PATH, pmix:NAME or dir:NAME, not to '{}'", place)};
}

}  // namespace nessie::service

// SPDX-License-Identifier: BSD-3-Clause
// The difference of two texts with the same number of lines, as `diff -u` shows it, and `patch` takes it.
#pragma once

#include <string>
#include <string_view>

namespace nessie::cli {

/// Empty if they are the same. The names stand in its head.
std::string unified_diff(std::string_view before, std::string_view after, const std::string &name_before,
                         const std::string &name_after);

}  // namespace nessie::cli

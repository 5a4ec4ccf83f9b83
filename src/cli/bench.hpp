// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

namespace nessie::cli {

/// Becomes the bench program; returns (non-zero) only if it is not there.
int bench(const std::vector<std::string> &arguments);

}  // namespace nessie::cli

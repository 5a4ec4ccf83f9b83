// SPDX-License-Identifier: BSD-3-Clause
// For tests.
#pragma once

#include <chrono>

namespace nnti {

inline constexpr std::chrono::seconds kWatchdog{60};  ///< within which everything happens that a test waits for

}  // namespace nnti

// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

namespace nnti::trios {

/// How many atomic variables a transport has: 512, or TRIOS_NNTI_MIN_ATOMIC_VARS if that is more.
std::size_t variables_wanted();

}  // namespace nnti::trios

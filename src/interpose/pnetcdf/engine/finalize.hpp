// SPDX-License-Identifier: BSD-3-Clause
// What lives as long as MPI does.
#pragma once

#include <functional>

namespace interpose {

/// Runs `work` at the beginning of the program's MPI_Finalize(), while MPI can still be called.
void at_finalize(std::function<void()> work);

}  // namespace interpose

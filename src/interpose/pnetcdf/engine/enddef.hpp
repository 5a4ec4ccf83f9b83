// SPDX-License-Identifier: BSD-3-Clause
// Leaving define mode.
#pragma once

#include <interpose/pnetcdf/engine/file.hpp>

namespace interpose {

/// Carries the definitions out in the file, and takes its new header over. If all servers have died, a new file is
/// native afterwards. Native PnetCDF's code, the same on all ranks.
int end_definitions(File &file, const EndDefLayout &layout);

}  // namespace interpose

// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace interpose {

/// Defines in the native file `to`, which is new and in define mode, what the native file `from` has, in the same
/// order: dimensions, attributes, variables. Not the fill modes. Collective over the processes of `to`. Native
/// PnetCDF's code.
int copy_header(int from, int to);

}  // namespace interpose

// SPDX-License-Identifier: BSD-3-Clause
// From a program's indices to pieces of a variable.
#pragma once

#include <interpose/pnetcdf/engine/access.hpp>
#include <interpose/pnetcdf/engine/file.hpp>

namespace interpose {

/// The region that a checked access covers.
Region region_of(File &file, const Access &access);

}  // namespace interpose

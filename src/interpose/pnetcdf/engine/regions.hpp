// SPDX-License-Identifier: BSD-3-Clause
// From a program's indices to pieces of a variable.
#pragma once

#include <interpose/pnetcdf/engine/access.hpp>
#include <interpose/pnetcdf/engine/file.hpp>

namespace interpose {

/// One rectangle of an access, with nothing implied any more.
struct Region {
  staging::Piece piece;  ///< without a stride, if all are one
  std::int64_t elements = 1;
  std::int64_t last_record = 0;  ///< number of records that a write needs; 0 for fixed-size variables
};

/// The region of a checked access that is not varn.
Region region_of(File &file, const Access &access);
/// Those of a checked varn access; without the empty ones.
std::vector<Region> regions_of(File &file, const Access &access);

}  // namespace interpose

// SPDX-License-Identifier: BSD-3-Clause
// Conversion between the types of the program's memory and the external types of netCDF variables, by native PnetCDF's
// rules: out-of-range elements give NC_ERANGE, and the variable's fill value (in memory: the type's default fill value)
// takes their place. External data are in host byte order here.
#pragma once

#include <mpi.h>
#include <pnetcdf.h>

#include <cstddef>

namespace interpose {

/// The types of elements in memory. kOther: types that PnetCDF knows in datatypes, but cannot convert (MPI_BYTE).
enum class Element {
  kText,
  kSchar,
  kUchar,
  kShort,
  kUshort,
  kInt,
  kUint,
  kLong,
  kFloat,
  kDouble,
  kLongLong,
  kUlongLong,
  kOther
};

/// The element type of one of PnetCDF's primitive MPI datatypes; kOther for any other.
Element element_of(MPI_Datatype primitive);
/// The element type in which an external type is held in memory as it is.
Element native_element(nc_type type);
std::size_t size_of(Element element);

/// False if the elements' bytes are the same in memory and externally. `format` is 1, 2 or 5: before CDF-5, an NC_BYTE
/// may hold unsigned char as it is.
bool needs_conversion(int format, nc_type external, Element memory);

/// Converts `count` elements. `fill` points to the variable's fill value in its external type. NC_NOERR, NC_ERANGE (all
/// others were converted), or NC_ECHAR / NC_EBADTYPE (none was).
int to_external(Element from, const void *memory, nc_type to, void *external, std::size_t count, const void *fill);
int from_external(nc_type from, const void *external, Element to, void *memory, std::size_t count);

}  // namespace interpose

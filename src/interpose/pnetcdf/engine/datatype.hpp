// SPDX-License-Identifier: BSD-3-Clause
// What an MPI datatype is made of, as native PnetCDF understands it.
#pragma once

#include <interpose/pnetcdf/engine/conversion.hpp>

#include <cstdint>

namespace interpose {

struct Datatype {
  Element element = Element::kOther;  ///< the one type that all of its elements have
  bool named = false;                 ///< PnetCDF knows the type of the elements
  std::int64_t elements = 0;
  bool contiguous = true;  ///< one element after the other, in memory and in the order of the type map
};

/// NC_EUNSPTETYPE: an element type that PnetCDF does not support. NC_EMULTITYPES: elements of several types.
int decode(MPI_Datatype type, Datatype &decoded);

}  // namespace interpose

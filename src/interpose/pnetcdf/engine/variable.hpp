// SPDX-License-Identifier: BSD-3-Clause
// A variable of a file, as accesses see it.
#pragma once

#include <services/staging/piece.hpp>

#include <pnetcdf.h>

namespace interpose {

/// What a read or write must know of a variable. It does not change after the variable's definition.
struct Variable {
  nc_type type = NC_NAT;
  staging::VariableLayout layout;
  int dimensions() const { return static_cast<int>(layout.shape.size()); }
};

}  // namespace interpose

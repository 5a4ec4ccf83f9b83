// SPDX-License-Identifier: BSD-3-Clause
// A part of a variable, and what travels (staging.x).
#pragma once

#include <staging.hpp>

#include <service/index_space.hpp>

#include <string>

namespace staging {

/// The numbers of the operations.
namespace Op = STAGING::CURRENT;

using nessie::service::bounds;
using nessie::service::Box;
using nessie::service::covered_elements;
using nessie::service::Extents;
using nessie::service::Interval;  // of element numbers
using nessie::service::IntervalSet;
/// Its elements travel in the variable's external type, in host byte order; where it lies, in a PieceList.
using nessie::service::Piece;
using nessie::service::Rows;
using nessie::service::RunCursor;
using nessie::service::SliceCursor;
using nessie::service::VariableLayout;

/// A variable as the server knows it.
struct Variable : VariableLayout {
  std::string name;
  int type = 0;  ///< nc_type
};

}  // namespace staging

// SPDX-License-Identifier: BSD-3-Clause
// How an MPI datatype was made.
#pragma once

#include <mpi.h>

#include <vector>

namespace interpose {

/// The constructor's arguments; frees the derived types among them.
struct TypeContents {
  int combiner = 0;
  std::vector<int> integers;
  std::vector<MPI_Aint> addresses;
  std::vector<MPI_Datatype> types;

  explicit TypeContents(MPI_Datatype type);
  TypeContents(const TypeContents &) = delete;
  TypeContents &operator=(const TypeContents &) = delete;
  ~TypeContents();

  bool is_named() const { return combiner == MPI_COMBINER_NAMED; }
  bool is_parametrised() const {
    return combiner == MPI_COMBINER_F90_INTEGER || combiner == MPI_COMBINER_F90_REAL ||
           combiner == MPI_COMBINER_F90_COMPLEX;
  }
};

}  // namespace interpose

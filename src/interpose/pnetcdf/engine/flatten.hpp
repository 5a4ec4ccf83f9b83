// SPDX-License-Identifier: BSD-3-Clause
// An MPI datatype as the bytes that it touches.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace interpose {

struct ByteRun {
  std::int64_t begin = 0, size = 0;
  bool operator==(const ByteRun &) const = default;
};

/// The bytes of one element of `type`, in the order of its type map. A run that continues the one before is joined to
/// it. Nothing, if it is made in a way that is not known here.
std::optional<std::vector<ByteRun>> flatten(MPI_Datatype type);

}  // namespace interpose

// SPDX-License-Identifier: BSD-3-Clause
// A part of a variable, and what travels (staging.x).
#pragma once

#include <staging.hpp>

#include <boost/container/small_vector.hpp>

#include <cstdint>
#include <functional>
#include <numeric>

namespace staging {

/// The numbers of the operations.
namespace Op = STAGING::CURRENT;

using Extents = boost::container::small_vector<std::int64_t, 6>;

/// Its elements travel in C order, in the variable's external type, in host byte order; where it lies, in a PieceList.
struct Piece {
  std::int32_t varid = 0;
  Extents start, count;
  Extents stride;  ///< empty: all ones
  std::int64_t step(std::size_t dim) const { return stride.empty() ? 1 : stride[dim]; }
  std::int64_t elements() const {
    return std::accumulate(count.begin(), count.end(), std::int64_t{1}, std::multiplies<>());
  }
};

}  // namespace staging

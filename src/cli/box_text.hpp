// SPDX-License-Identifier: BSD-3-Clause
// What a user writes for a part of an array: T[0:9,:,5], as Python and NumPy have it.
#pragma once

#include <nessie/streams.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nessie::cli {

/// Of one dimension. Half-open, as in Python: 0:9 are the elements 0 to 8; what is negative counts from the end.
struct RangeText {
  std::optional<std::int64_t> start, stop;  ///< nothing: from the first, to the last
  bool is_index = false;                    ///< one element, `start`
  std::size_t at = 0;                       ///< where it stands in the text
};

/// A variable, and what of it.
struct BoxText {
  std::string text, variable;
  std::vector<RangeText> ranges;  ///< of its first dimensions; of the others, all

  /// kInvalidArgument, with what is expected where.
  static Result<BoxText> parse(std::string_view text);
  /// Of a variable with that shape. Ranges end where the dimension does, as in Python. kOutOfRange: an element that is
  /// not there; kInvalidArgument: more dimensions than it has. Both say where.
  Result<streams::Box> in(const streams::Extents &shape) const;
};

}  // namespace nessie::cli

// SPDX-License-Identifier: BSD-3-Clause
// What a client says of a transfer is looked at here, as a whole, before anything is done with it.
#pragma once

#include <services/staging/piece.hpp>
#include <services/staging/piece_list.hpp>

#include <nessie/result.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace staging {

/// Pieces of one variable that follow each other in a list.
struct Part {
  std::int32_t varid = 0;
  std::uint64_t bytes = 0;
  Interval bounds;  ///< of their elements
};

/// What a list comes to.
struct Checked {
  std::vector<Part> parts;
  std::uint64_t bytes = 0;  ///< of all pieces
  std::int64_t records =
      0;  ///< that the file has at least when they have been written; 0: none is of a record variable
};

/// ok: `list` is a list, each of its pieces lies in its variable, and `data_bytes` have room for all, one after the
/// other. kInvalidArgument otherwise. `find(varid)` gives a const Variable *, null: there is none.
template <class Find>
nessie::Result<Checked> check_pieces(std::span<const std::byte> list, std::uint64_t data_bytes, const Find &find);

namespace detail {

nessie::Error no_variable(std::int32_t varid);
nessie::Error not_within(const Variable &variable);
nessie::Error no_list();
nessie::Error too_long(std::uint64_t pieces, std::uint64_t buffer);
/// Adds a piece. False: it does not lie within the variable, or the sums overflow.
bool add(const Variable &variable, const Piece &piece, Checked &checked);

}  // namespace detail

template <class Find>
nessie::Result<Checked> check_pieces(std::span<const std::byte> list, std::uint64_t data_bytes, const Find &find) {
  Checked checked;
  Piece piece;
  PieceReader reader(list);
  while (reader.next(piece)) {
    const Variable *variable = find(piece.varid);
    if (variable == nullptr) return detail::no_variable(piece.varid);
    if (!detail::add(*variable, piece, checked)) return detail::not_within(*variable);
  }
  if (reader.failed()) return detail::no_list();
  if (checked.bytes > data_bytes) return detail::too_long(checked.bytes, data_bytes);
  return checked;
}

}  // namespace staging

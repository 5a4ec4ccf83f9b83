// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/pieces_check.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace staging::detail {

namespace {

nessie::Error bad_piece(const std::string &why) {
  return {nessie::Code::kInvalidArgument, "a transfer cannot be carried out: " + why};
}

}  // namespace

nessie::Error no_variable(std::int32_t varid) { return bad_piece(fmt::format("there is no variable {}", varid)); }
nessie::Error not_within(const Variable &variable) {
  return bad_piece(fmt::format("a piece does not lie within variable {}", variable.name));
}
nessie::Error no_list() { return bad_piece("what should list its pieces does not"); }
nessie::Error too_long(std::uint64_t pieces, std::uint64_t buffer) {
  return bad_piece(fmt::format("its pieces take {} bytes, its buffer {}", pieces, buffer));
}

bool add(const Variable &variable, const Piece &piece, Checked &checked) {
  const auto elements = checked_elements(variable, piece);
  std::uint64_t bytes = 0;
  if (!elements || __builtin_mul_overflow(*elements, variable.element_bytes, &bytes) ||
      __builtin_add_overflow(checked.bytes, bytes, &checked.bytes))
    return false;
  if (checked.parts.empty() || checked.parts.back().varid != piece.varid) checked.parts.push_back({piece.varid, 0, {}});
  if (*elements == 0) return true;
  auto &part = checked.parts.back();
  part.bytes += bytes;
  part.bounds = hull(part.bounds, bounds(variable, piece));
  if (variable.is_record)
    checked.records = std::max(checked.records, piece.start[0] + (piece.count[0] - 1) * piece.step(0) + 1);
  return true;
}

}  // namespace staging::detail

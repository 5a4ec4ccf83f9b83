// SPDX-License-Identifier: BSD-3-Clause
// A request to write or read, as any client may send it: the pieces that pass the server's check lie in the file's
// variables, and in the caller's buffer, whatever their numbers are; and every way to take one apart finds the same
// elements.
#include <services/staging/domains.hpp>
#include <services/staging/server/pieces_check.hpp>

#include <base/testing/fuzz.hpp>
#include <xdr/codec.hpp>

#include <map>
#include <vector>

using namespace nessie::fuzz;
using namespace staging;

namespace {

constexpr std::size_t kMostDims = 8, kMostVariables = 8, kMostSlices = 8, kSliceBytes = 64;
constexpr std::int64_t kMostElements = 4096;                      // of a piece that is looked at one by one
constexpr std::int64_t kMostOfVariable = std::int64_t{1} << 62;   // bytes; of one record, for a record variable
constexpr std::int64_t kMostOfWholeFile = std::int64_t{1} << 50;  // bytes that a file can have, records and all

struct Shape {
  std::int32_t is_record = 0, element_bytes = 0;
  Extents shape;
  template <class A> void xdr(A &a) { a(is_record, element_bytes, shape); }
};

/// A file, and what is asked of it.
struct Asked {
  std::vector<Shape> variables;
  std::int32_t servers = 1;
  std::uint64_t data_bytes = 0;
  TransferArgs args;
  template <class A> void xdr(A &a) { a(variables, servers, data_bytes, args); }
};

Variable variable_of(const Shape &shape, int varid) {
  Variable variable;
  variable.varid = varid;
  variable.element_bytes = 1 << (shape.element_bytes & 3);
  variable.shape = shape.shape;
  variable.is_record = (shape.is_record & 1) != 0;
  if (variable.is_record && !variable.shape.empty()) variable.shape[0] = 0;
  variable.name = "v";
  return variable;
}

/// As native PnetCDF lets a file have it: a length of 0 is that of the record dimension.
bool is_possible(const Variable &variable) {
  if (variable.dims() > kMostDims || (variable.is_record && variable.dims() == 0)) return false;
  std::int64_t bytes = variable.element_bytes;
  for (std::size_t d = variable.is_record ? 1 : 0; d < variable.dims(); ++d)
    if (variable.shape[d] < 1 || __builtin_mul_overflow(bytes, variable.shape[d], &bytes) || bytes > kMostOfVariable)
      return false;
  return true;
}

/// Within the variable; the bytes that it takes.
std::uint64_t require_within(const Variable &variable, const Piece &piece) {
  const auto run = bounds(variable, piece);
  std::int64_t last_byte = 0;
  require(run.begin >= 0 && run.size() >= 0 && !__builtin_mul_overflow(run.end, variable.element_bytes, &last_byte));
  require(variable.is_record || run.end <= variable.extent_elements());
  std::size_t seen = 0;
  for (SliceCursor cut(piece, variable.element_bytes, kSliceBytes); !cut.done() && seen < kMostSlices;
       cut.next(), ++seen) {
    const auto part = bounds(variable, cut.slice());
    require(part.begin >= run.begin && part.end <= run.end && cut.elements() > 0);
  }
  return static_cast<std::uint64_t>(piece.elements()) * static_cast<std::uint64_t>(variable.element_bytes);
}

void walk_boxes(const Variable &variable, const Piece &piece) {
  const auto run = bounds(variable, piece);
  std::int64_t sum = 0;
  for (const auto &box : boxes_of(variable, run)) {
    sum += box.elements();
    (void)describe("v", box);
  }
  require(sum == run.size());
}

void walk_elements(const Variable &variable, const Piece &piece, int servers) {
  const auto within = bounds(variable, piece);
  std::int64_t in_runs = 0, in_slices = 0, in_parts = 0;
  for (RunCursor cursor(variable, piece); !cursor.done();) {
    const auto rows = cursor.rows_within(within);
    require(rows.first.begin >= within.begin && rows.first.end <= within.end && rows.size() > 0);
    in_runs += rows.size();
    cursor.consume(rows);
  }
  for (SliceCursor cursor(piece, variable.element_bytes, kSliceBytes); !cursor.done(); cursor.next()) {
    require(checked_elements(variable, cursor.slice()) == cursor.elements());
    in_slices += cursor.elements();
  }
  for (const auto &part : Domains(variable, servers).split(piece)) {
    require(part.server >= 0 && part.server < servers);
    require(part.offset_bytes == static_cast<std::size_t>(in_parts * variable.element_bytes));
    in_parts += static_cast<std::int64_t>(part.size_bytes) / variable.element_bytes;
  }
  require(in_runs == piece.elements() && in_slices == piece.elements() && in_parts == piece.elements());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  const auto asked = xdr::decode<Asked>(std::as_bytes(std::span(data, size)));
  if (!asked.ok() || asked->variables.size() > kMostVariables) return 0;
  std::vector<Variable> variables;
  for (const auto &shape : asked->variables) {
    variables.push_back(variable_of(shape, static_cast<int>(variables.size())));
    if (!is_possible(variables.back())) return 0;
  }
  const auto find = [&](std::int32_t varid) {
    const auto place = static_cast<std::size_t>(varid);
    return varid < 0 || place >= variables.size() ? static_cast<const Variable *>(nullptr) : &variables[place];
  };
  const auto &list = asked->args.pieces;
  const auto checked = check_pieces(list, asked->data_bytes, find);
  if (!checked.ok()) return 0;
  std::uint64_t left = asked->data_bytes;
  require(checked->records >= 0 && checked->bytes <= left);
  std::map<std::int32_t, std::vector<Piece>> small;  // by variable
  Piece piece;
  for (PieceReader pieces(list); pieces.next(piece);) {
    const auto &variable = *find(piece.varid);
    require(checked_elements(variable, piece) == piece.elements());
    const auto bytes = require_within(variable, piece);
    require(bytes <= left);
    left -= bytes;
    if (variable.is_record && bytes > 0) require(checked->records > piece.start[0]);
    if (bounds(variable, piece).end > kMostOfWholeFile / variable.element_bytes) continue;
    if (bytes > 0) walk_boxes(variable, piece);
    if (piece.elements() > kMostElements) continue;
    walk_elements(variable, piece, 1 + (asked->servers & 7));
    if (bytes > 0) small[piece.varid].push_back(piece);
  }
  for (const auto &[varid, pieces] : small) require(covered_elements(*find(varid), pieces) > 0);
  require(left == asked->data_bytes - checked->bytes);
  return 0;
}

std::vector<nessie::fuzz::Bytes> nessie::fuzz::seeds() {
  const auto seed = [](std::vector<Shape> variables, std::uint64_t data_bytes, const PieceList &pieces) {
    Asked asked{std::move(variables), 2, data_bytes, {}};
    asked.args.pieces = pieces.bytes();
    return xdr::encode(asked);
  };
  constexpr auto kMost = INT64_MAX;
  constexpr std::uint64_t kMuch = 1 << 20;
  return {seed({{0, 2, {4, 5, 6}}, {1, 3, {0, 7}}}, kMuch,
               {Piece{0, {1, 0, 2}, {2, 5, 3}, {}}, Piece{1, {9, 1}, {3, 2}, {4, 3}}}),
          seed({{0, 2, {4, 5, 6}}}, kMuch, {Piece{0, {0, 0, 0}, {2, 2, 2}, {2, 3, 4}}}),
          seed({{1, 3, {0, 1 << 16}}}, kMuch, {Piece{0, {7, 3}, {2, 100}, {5, 600}}}),
          seed({{0, 3, {11, 64, 64}}}, kMuch, {Piece{0, {5, 0, 0}, {1, 64, 64}, {kMost, 1, 1}}}),
          seed({{0, 0, {4, 6}}}, kMuch, {Piece{0, {1, 2}, {1, 3}, {kMost, 1}}, Piece{0, {kMost, 2}, {0, 3}, {}}}),
          seed({{1, 0, {0, 1}}}, kMuch, {Piece{0, {0, 0}, {2, 1}, {kMost / 2 + 2, 1}}}),
          seed({{0, 0, {kMost / 2}}}, kMost, {Piece{0, {0}, {kMost / 2}, {}}, Piece{0, {0}, {kMost / 2}, {}}}),
          seed({{1, 3, {0}}}, 8, {Piece{0, {kMost / 8 - 1}, {1}, {kMost}}}),
          seed({{1, 0, {0, 0}}}, 0, {Piece{0, {kMost - 1, 0}, {1, 0}, {}}}),
          seed({{0, 1, {}}}, 2, {Piece{0, {}, {}, {}}, Piece{7, {}, {}, {}}}),
          seed({{0, 0, {4}}}, 4, {Piece{0, {kMost}, {0}, {}}, Piece{0, {0}, {4}, {}}})};
}

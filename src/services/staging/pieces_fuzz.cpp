// SPDX-License-Identifier: BSD-3-Clause
// What a client says of a transfer: pieces of a variable. Those that do not lie in it are refused; of the others every
// way to take them apart must find the same elements.
#include <services/staging/domains.hpp>
#include <services/staging/index_space.hpp>

#include <base/testing/fuzz.hpp>
#include <xdr/codec.hpp>

using namespace nessie::fuzz;
using namespace staging;

namespace {

constexpr std::int64_t kMostElements = 4096;  // that are looked at one by one
constexpr std::int64_t kMostOfVariable = std::int64_t{1} << 50;
constexpr std::size_t kMostDims = 8, kMostPieces = 8, kSliceBytes = 64;

struct Encoded : Piece {
  template <class A> void xdr(A &a) { a(varid, start, count, stride); }
};

struct Selection {
  std::int32_t is_record = 0, element_bytes = 1, servers = 1;
  Extents shape;
  std::vector<Encoded> pieces;
  template <class A> void xdr(A &a) { a(is_record, element_bytes, servers, shape, pieces); }
};

/// A variable as a file can have it.
bool is_possible(const VariableLayout &variable) {
  std::int64_t elements = variable.element_bytes;
  if (variable.is_record && variable.dims() == 0) return false;
  for (std::size_t d = variable.is_record ? 1 : 0; d < variable.dims(); ++d)
    if (variable.shape[d] < 1 || __builtin_mul_overflow(elements, variable.shape[d], &elements) ||
        elements > kMostOfVariable)
      return false;
  return true;
}

void walk_runs(const VariableLayout &variable, const Piece &piece, std::int64_t elements) {
  const auto within = bounds(variable, piece);
  std::int64_t sum = 0;
  for (RunCursor cursor(variable, piece); !cursor.done();) {
    const auto rows = cursor.rows_within(within);
    require(rows.first.begin >= within.begin && rows.first.end <= within.end && rows.size() > 0);
    sum += rows.size();
    cursor.consume(rows);
  }
  require(sum == elements);
}

void walk_slices(const VariableLayout &variable, const Piece &piece, std::int64_t elements) {
  std::int64_t sum = 0;
  for (SliceCursor cursor(piece, variable.element_bytes, kSliceBytes); !cursor.done(); cursor.next()) {
    require(checked_elements(variable, cursor.slice()) == cursor.elements());
    sum += cursor.elements();
  }
  require(sum == elements);
}

void split(const VariableLayout &variable, const Piece &piece, std::int64_t elements, int servers) {
  std::size_t bytes = 0;
  for (const auto &part : Domains(variable, servers).split(piece)) {
    require(part.server >= 0 && part.server < servers && part.offset_bytes == bytes);
    bytes += part.size_bytes;
  }
  require(bytes == static_cast<std::size_t>(elements * variable.element_bytes));
}

void box(const VariableLayout &variable, const Piece &piece) {
  const auto run = bounds(variable, piece);
  std::vector<Box> boxes;
  append_boxes(variable, run, boxes);
  std::int64_t sum = 0;
  for (const auto &each : boxes) {
    sum += each.elements();
    (void)describe("v", each);
  }
  require(sum == run.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  const auto selection = xdr::decode<Selection>(std::as_bytes(std::span(data, size)));
  if (!selection.ok() || selection->shape.size() > kMostDims || selection->pieces.size() > kMostPieces) return 0;
  VariableLayout variable;
  variable.element_bytes = 1 << (selection->element_bytes & 3);
  variable.is_record = (selection->is_record & 1) != 0;
  variable.shape = selection->shape;
  if (!is_possible(variable)) return 0;
  if (variable.is_record) variable.shape[0] = 0;
  std::vector<Piece> small;
  for (const auto &piece : selection->pieces) {
    const auto elements = checked_elements(variable, piece);
    if (!elements) continue;
    if (*elements > 0) box(variable, piece);
    if (*elements > kMostElements) continue;
    walk_runs(variable, piece, *elements);
    walk_slices(variable, piece, *elements);
    split(variable, piece, *elements, 1 + (selection->servers & 7));
    if (*elements > 0) small.push_back(piece);
  }
  if (!small.empty()) require(covered_elements(variable, small) > 0);
  return 0;
}

std::vector<nessie::fuzz::Bytes> nessie::fuzz::seeds() {
  const auto encoded = [](const Selection &selection) { return xdr::encode(selection); };
  return {
      encoded(
          {0, 2, 1, {4, 5, 6}, {{Piece{0, {1, 0, 2}, {2, 5, 3}, {}}}, {Piece{0, {0, 0, 0}, {2, 2, 2}, {2, 3, 4}}}}}),
      encoded({1, 3, 3, {0, 1 << 16}, {{Piece{0, {7, 3}, {2, 100}, {5, 600}}}}}),
      encoded({0, 0, 0, {4, 6}, {{Piece{0, {1, 2}, {1, 3}, {INT64_MAX, 1}}}}}),
      encoded({0, 0, 0, {4, 6}, {{Piece{0, {INT64_MAX, 2}, {0, 3}, {}}}}}),
      encoded({1, 0, 0, {0}, {{Piece{0, {9}, {3}, {2}}}}}),
      encoded({1, 0, 0, {0, 1}, {{Piece{0, {0, 0}, {2, 1}, {INT64_MAX / 2 + 2, 1}}}}}),
      encoded({0, 3, 2, {11, 64, 64}, {{Piece{0, {5, 0, 0}, {1, 64, 64}, {INT64_MAX, 1, 1}}}}}),
      encoded({0, 1, 2, {}, {{Piece{0, {}, {}, {}}}}})};
}

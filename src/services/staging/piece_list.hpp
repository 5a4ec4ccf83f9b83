// SPDX-License-Identifier: BSD-3-Clause
// Pieces of variables as they travel: a climate model writes a hundred thousand of a few elements each, so that what
// says where they belong must not be longer than they are.
//
// Format, a sequence of pieces. Numbers are unsigned, seven bits in a byte, the lowest first; the eighth bit says that
// more follow (LEB128). A piece is
//   1 byte           kNewVariable: the next two numbers are there, otherwise as in the piece before; kStrided: each
//                    dimension has a stride
//   number           variable id
//   number           dimensions
//   each dimension   start, count and, if strided, stride
// Lists can be joined: the first piece of each names its variable.
#pragma once

#include <services/staging/piece.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

namespace staging {

/// The box around pieces of one variable, strides left out of account.
struct Hull {
  std::int32_t varid = 0;
  Extents begin, end;
  void cover(std::size_t dims, const std::int64_t *start, const std::int64_t *count, const std::int64_t *stride);
  void cover(const Hull &other);
};
/// If not, the pieces in them have no element in common.
bool overlap(const Hull &a, const Hull &b);

class PieceList {
 public:
  PieceList() = default;
  PieceList(const Piece &piece) { append(piece); }
  PieceList(std::initializer_list<Piece> pieces) {
    for (const auto &piece : pieces) append(piece);
  }

  void append(const Piece &piece);
  /// `start`, `count` and `stride` have `dims` numbers each; without `count`, or `stride`, all of them are one. No
  /// number is negative.
  void append(int varid, std::size_t dims, const std::int64_t *start, const std::int64_t *count,
              const std::int64_t *stride);
  void append(const PieceList &more);
  void clear();

  bool empty() const { return size_ == 0; }
  /// Pieces.
  std::size_t size() const { return size_; }
  /// Of all pieces together.
  std::int64_t elements() const { return elements_; }
  /// The boxes around its pieces, one for each row of pieces of the same variable.
  const std::vector<Hull> &hulls() const { return hulls_; }
  /// The list as it travels.
  const Bytes &bytes() const { return bytes_; }

 private:
  Bytes bytes_;
  std::vector<Hull> hulls_;
  std::size_t size_ = 0;
  std::int64_t elements_ = 0;
};

/// Takes a list apart, which may come from anybody.
class PieceReader {
 public:
  /// `bytes` are borrowed.
  explicit PieceReader(std::span<const std::byte> bytes) : at_(bytes.data()), end_(at_ + bytes.size()) {}
  explicit PieceReader(const PieceList &list) : PieceReader(std::span(list.bytes())) {}

  /// The next piece, in place of the last one. False: there is none, or what follows is no piece.
  bool next(Piece &piece);
  /// What follows is no piece.
  bool failed() const { return failed_; }

 private:
  bool take(std::int64_t &number);
  bool take_dimensions(Piece &piece, bool strided);

  const std::byte *at_, *end_;
  std::int64_t varid_ = 0, dims_ = -1;
  bool failed_ = false;
};

}  // namespace staging

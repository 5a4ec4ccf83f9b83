// SPDX-License-Identifier: BSD-3-Clause
// The geometry of a variable: its elements in row-major order, numbered from 0 (a record variable: through all
// records), and the ways between pieces (start, count, stride), runs of consecutive elements, and boxes.
#pragma once

#include <boost/container/small_vector.hpp>
#include <service/interval_set.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace nessie::service {

using Extents = boost::container::small_vector<std::int64_t, 6>;

/// A part of a variable. Its elements lie in C order.
struct Piece {
  std::int32_t varid = 0;
  Extents start, count;
  Extents stride;  ///< empty: all ones
  std::int64_t step(std::size_t dim) const { return stride.empty() ? 1 : stride[dim]; }
  std::int64_t elements() const {
    return std::accumulate(count.begin(), count.end(), std::int64_t{1}, std::multiplies<>());
  }
};

/// The shape of a variable: where its elements are.
struct VariableLayout {
  int varid = 0;
  int element_bytes = 1;  ///< of the external type
  bool is_record = false;
  Extents shape;  ///< shape[0] is meaningless for a record variable

  std::size_t dims() const { return shape.size(); }
  /// Elements of one step in dimension `dim`.
  std::int64_t elements_below(std::size_t dim) const;
  /// Elements of the variable; of one record, for a record variable.
  std::int64_t extent_elements() const {
    return is_record ? elements_below(0) : (dims() == 0 ? 1 : shape[0] * elements_below(0));
  }
};

/// Elements that `piece` selects; nothing if the piece does not lie within the variable (a record variable has no last
/// record), or its numbers overflow. What comes from a client passes here before it is used.
std::optional<std::int64_t> checked_elements(const VariableLayout &variable, const Piece &piece);

/// Runs of equal length at equal distances.
struct Rows {
  Interval first;
  std::int64_t count = 1, step = 0;
  /// Elements of all.
  std::int64_t size() const { return count * first.size(); }
};

/// The runs of consecutive elements that a piece consists of, in the order of its data. The piece must have passed
/// checked_elements.
class RunCursor {
 public:
  RunCursor(const VariableLayout &variable, const Piece &piece);
  bool done() const { return done_; }
  /// What is left of the present run.
  Interval run() const { return {position_, position_ + left_}; }
  /// The present run and those that follow it in one dimension: as many as lie within `bounds`, or, if not even the
  /// first one does, its part. The present position lies within `bounds`.
  Rows rows_within(Interval bounds) const;
  /// Goes on by `elements` <= run().size().
  void consume(std::int64_t elements) {
    position_ += elements;
    left_ -= elements;
    if (left_ == 0) next_run();
  }
  /// Goes on by what rows_within() said.
  void consume(const Rows &rows);

 private:
  void next_run();
  struct Level {
    std::int64_t count, step, at;
  };
  boost::container::small_vector<Level, 6> levels_;  ///< innermost first; those inside of a run are left out
  std::int64_t run_elements_ = 1, origin_ = 0, position_ = 0, left_ = 0;
  bool done_ = false;
};

/// Whether the boxes around two pieces meet. If not, the pieces have no element in common.
bool overlap(const Piece &a, const Piece &b);

/// Elements of one variable that pieces select, those that several select counted once.
std::int64_t covered_elements(const VariableLayout &variable, std::span<const Piece> pieces);

/// The smallest run that holds all of a piece.
Interval bounds(const VariableLayout &variable, const Piece &piece);

struct Box {
  Extents start, count;
  std::int64_t elements() const;
  bool operator==(const Box &) const = default;
};

/// Appends the boxes that make up the elements of `run` (at most 2 * dims - 1), in ascending order. A box that
/// continues the last one in `boxes` is joined to it.
void append_boxes(const VariableLayout &variable, Interval run, std::vector<Box> &boxes);
/// The boxes that make up the elements of `run`.
std::vector<Box> boxes_of(const VariableLayout &variable, Interval run);

/// "temperature[0:63,0:63,0:63]", bounds inclusive; "temperature" for a scalar.
std::string describe(const std::string &name, const Box &box);

/// Cuts a piece into pieces of at most `max_bytes` (but at least one element), each contiguous in the piece's data, in
/// order.
class SliceCursor {
 public:
  SliceCursor(const Piece &piece, int element_bytes, std::size_t max_bytes);
  bool done() const { return done_; }
  const Piece &slice() const { return slice_; }
  std::int64_t elements() const { return elements_; }
  void next();

 private:
  static constexpr std::size_t kUncut = ~std::size_t{0};
  void fill_slice();
  const Piece &piece_;
  Piece slice_;
  std::size_t cut_ = 0;  ///< the dimension that is cut into steps of step_; those before it go one by one
  std::int64_t step_ = 1, elements_ = 0;
  Extents at_;
  bool done_ = false;
};

}  // namespace nessie::service

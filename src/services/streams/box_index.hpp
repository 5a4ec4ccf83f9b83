// SPDX-License-Identifier: BSD-3-Clause
// Which of many boxes meet a given one.
//
// Design notes. A few balanced trees of boxes around boxes, each at least twice as large as the next one (Bentley and
// Saxe, 1980), and some boxes that are in none yet. So n boxes are added in n log² n, and one that meets few of them is
// compared with some log² n, if they do not overlap each other much: what is put into a step does not at all.
#pragma once

#include <services/streams/geometry.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace streams {

/// Of boxes that all have as many dimensions, and elements. One thread at a time, also to look things up.
class BoxIndex {
 public:
  struct Found {
    std::size_t number = 0;  ///< how many were added before it
    Box box;
  };
  void add(const Box &box);
  /// One that has an element in common with `box`.
  std::optional<Found> find(const Box &box) const;
  /// All that do, in the order in which they were added.
  std::vector<std::size_t> all(const Box &box) const;
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  void clear() { *this = {}; }
  /// With how many boxes others were compared so far: what it costs.
  std::uint64_t comparisons() const { return comparisons_; }

 private:
  using Corners = std::vector<std::int64_t>;  ///< of each box: its first element, and the one behind its last
  struct Tree {
    std::vector<std::size_t> numbers;
    Corners leaves;  ///< as the numbers
    Corners inner;   ///< around the leaves below; a node is followed by those below its first half, and then the others
  };
  struct Range {
    std::size_t node, first, count;  ///< an inner node, if there are several leaves, and these
  };
  /// False: no more is wanted.
  using Visit = std::function<bool(const Tree &tree, std::size_t leaf)>;
  bool meets(const Corners &corners, std::size_t i, const Box &box) const;
  bool visit(const Tree &tree, Range range, const Box &box, const Visit &each) const;
  bool visit_all(const Box &box, const Visit &each) const;
  void plant();
  void divide(Tree &tree, std::vector<std::size_t> &order, Range range) const;
  std::size_t widest(const std::int64_t *node) const;

  std::size_t dimensions_ = 0, size_ = 0;
  std::vector<Tree> trees_;  ///< the largest first
  Tree fresh_;               ///< leaves only
  mutable std::uint64_t comparisons_ = 0;
};

}  // namespace streams

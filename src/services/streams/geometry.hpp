// SPDX-License-Identifier: BSD-3-Clause
// What can be a name, a shape and a box; what two boxes have in common, and how it is copied from one to the other.
#pragma once

#include <nessie/result.hpp>
#include <streams.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace streams {

using nessie::Code;
using nessie::Error;
using nessie::Result;
using nessie::Status;
using Box = BoxArgs;

/// Ranks that write, or read, a stream together, at most.
inline constexpr std::uint32_t kMostRanks = 1 << 20;

/// 0: no such type.
std::size_t size_of(ElementType type);
const char *name_of(ElementType type);

/// kInvalidArgument, with what to correct. `what`: "stream", "variable", "attribute".
Status check_name(const char *what, std::string_view name);
/// Which of so many servers keeps account of a name in the shared space: the same in all programs.
std::uint32_t home_of(std::string_view name, std::uint32_t servers);
/// kInvalidArgument, with what to correct: name, type, shape or fill value cannot be. The bytes of all elements are a
/// number of 63 bits then.
Status check(const VariableArgs &variable);
Status check(const AttributeArgs &attribute);
/// Start and count have as many dimensions, at most MOST_DIMENSIONS; none is negative; elements can be counted in 2^60.
bool is_box(const Box &box);
/// kInvalidArgument: it is no box, or has other dimensions than the variable. kOutOfRange: it is not inside.
Status check_inside(const VariableArgs &variable, const Box &box);
/// Whether two variables of one name may be put in one step.
bool agree(const VariableArgs &a, const VariableArgs &b);

/// Of boxes and shapes that have passed a check.
std::int64_t elements_of(const std::vector<std::int64_t> &count);
inline std::int64_t elements_of(const Box &box) { return elements_of(box.count); }
inline std::uint64_t bytes_of(const VariableArgs &variable, const Box &box) {
  return static_cast<std::uint64_t>(elements_of(box)) * size_of(variable.type);
}
Box whole(const std::vector<std::int64_t> &shape);
/// Nothing: they have no element in common.
std::optional<Box> intersection(const Box &a, const Box &b);
bool overlap(const Box &a, const Box &b);
bool contains(const Box &outer, const Box &inner);
/// The smallest box that has both; of one that has no elements, the other.
Box around(const Box &a, const Box &b);
/// "T[0:9,3:5]", bounds inclusive; "T" for a scalar.
std::string describe(std::string_view name, const Box &box);

/// Where the first element of `part` is among those of `box`, which contains it, in C order.
std::int64_t place_in(const Box &box, const Box &part);
/// Whether the elements of `part` follow each other in `box`, which contains it.
bool is_run_of(const Box &box, const Box &part);
/// Of how many bytes runs of `box` are that `part`, which it contains, is made of.
std::size_t run_bytes(const Box &box, const Box &part, std::size_t element_bytes);

/// Copies what `part` selects from an array that has `source_box` to one that has `target_box`, both in C order. Both
/// contain `part`.
void copy_part(const Box &part, std::size_t element_bytes, const std::byte *source, const Box &source_box,
               std::byte *target, const Box &target_box);
/// Copies a box between C and Fortran order: the last, or the first, dimension fastest.
void transpose(const std::vector<std::int64_t> &count, std::size_t element_bytes, const std::byte *source,
               std::byte *target, bool to_fortran);
/// Sets `elements` elements to one value, whose bytes are `value`.
void fill_with(std::byte *target, std::int64_t elements, const std::vector<std::byte> &value);

/// Cuts `box` into boxes of at most `most_bytes` (but at least one element) that are runs of it, one after the other.
class Slices {
 public:
  Slices(const Box &box, std::size_t element_bytes, std::size_t most_bytes);
  bool done() const { return done_; }
  const Box &slice() const { return slice_; }
  std::int64_t elements() const { return elements_; }
  void next();

 private:
  void set();
  const Box box_;
  Box slice_;
  std::size_t cut_ = 0;  ///< the dimension that is cut into pieces of step_; those before it go one by one
  std::int64_t step_ = 1, elements_ = 0;
  std::vector<std::int64_t> at_;
  bool done_ = false;
};

}  // namespace streams

// SPDX-License-Identifier: BSD-3-Clause
// What a stream's arrays are called, and how they lie, in a netCDF file that has its steps as records:
// docs/streams-formats.md. Nothing here touches a file.
#pragma once

#include "services/streams/sinks/step.hpp"

#include <string>
#include <utility>
#include <vector>

namespace nessie::streams::sinks {

/// Attributes of ours, which tell a file of steps from others, and how it is to be read.
namespace marks {
inline constexpr const char *kLayout = "nessie_layout";      ///< the version: 1
inline constexpr const char *kStream = "nessie_stream";      ///< the stream's name
inline constexpr const char *kIdentity = "nessie_identity";  ///< Origin::identity, as 16 hexadecimal digits
inline constexpr const char *kStep = "nessie_step";          ///< what the dimension of steps is called
inline constexpr const char *kVariable = "nessie_variable";  ///< the variable's name in the stream, if it differs
inline constexpr const char *kShape = "nessie_shape";        ///< the variable that has this one's shape in each step
inline constexpr const char *kFillValue = "_FillValue";      ///< netCDF's own
}  // namespace marks

struct FileVariable {
  Variable variable;  ///< as in the stream; but `shape` is what there is room for, 1 or more in each dimension
  std::string name;
  std::vector<std::string> dimensions;  ///< without that of steps
  std::string shape_name;               ///< of the variable that has its shape in each step; empty: it is always this
  std::string shape_dimension;          ///< whose length is the number of its dimensions; empty likewise
  bool operator==(const FileVariable &) const = default;
};

struct Layout {
  Origin origin;
  std::string step_name;  ///< of the unlimited dimension, and of the variable that has the steps' numbers
  std::vector<FileVariable> variables;
  std::vector<std::pair<std::string, std::int64_t>> dimensions;  ///< without that of steps
  std::vector<Attribute> attributes;                             ///< `variable` as in the stream, `name` as in the file
  bool operator==(const Layout &) const = default;
};

/// For a file that begins with this step.
Layout layout_of(const Origin &origin, const Step &step);

/// Whether the step's arrays have room in a file of that layout. Attributes do not count.
bool has_room(const Layout &layout, const Step &step);

/// A layout that has room for what `layout` has, and for the step: arrays that have grown get a quarter more than they
/// had, or what they need, so that those which grow again and again do not have all of it written anew each time.
/// kUnsupported: a variable was constant and is not, or the other way round.
Result<Layout> widened(const Layout &layout, const Step &step);

/// Those of a step that a file of that layout shows, as it has them. Without our own, those of variables that it has
/// not, and fill values, which are the variables'.
std::vector<Attribute> attributes_for(const Layout &layout, const Step &step);

/// A name that netCDF takes: '/' becomes '.', whatever else it does not take '_'.
std::string file_name(std::string_view name);

}  // namespace nessie::streams::sinks

// SPDX-License-Identifier: BSD-3-Clause
// How C calls what an interface names: shared by the header and the codec that are made of it.
#pragma once

#include "xdr/idl/graph.hpp"

#include <string>
#include <string_view>

namespace xdr::idl {

/// A name that C keeps for itself gets a '_' at its end.
std::string c_name(const std::string &name);

/// In capitals, with a '_' for whatever a macro's name cannot hold.
std::string c_macro(std::string text);

/// A type of the language itself.
struct CNumber {
  std::string_view word;   ///< the file's
  std::string_view type;   ///< C's
  std::string_view coder;  ///< libtirpc's function, or ours
  int block_bytes;         ///< of arrays that are coded block by block; 0: element by element
};
/// Null: it is no number and no bool.
const CNumber *c_number(const Type &type);

/// "u_int", "point"; of what has no type by itself, that of its elements: "char".
std::string c_type(const Type &type);

/// A typedef whose values are arrays: they are passed as C passes arrays.
bool is_c_array(const TypeGraph &graph, const Definition &definition);

}  // namespace xdr::idl

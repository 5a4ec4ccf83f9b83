// SPDX-License-Identifier: BSD-3-Clause
// How C calls what an interface names: shared by the header and the codec that are made of it.
#pragma once

#include "xdr/idl/graph.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace xdr::idl {

/// A macro of common headers, which is no name for anything that they are included with.
bool is_c_macro(std::string_view name);
/// Of the C library.
bool is_c_function(std::string_view name);

/// A name that C, or a header that ours includes, keeps for itself gets a '_' at its end.
std::string c_name(const std::string &name);

/// What the header says of the numbers that a file names.
class CNumberNames {
 public:
  explicit CNumberNames(const Interface &interface);

  /// A constant that cannot be a macro, which would replace what else is called so: it has small letters, or is a
  /// member's name as well.
  bool is_enumerator(const Constant &it) const;
  /// Of a program, a version or a procedure: it is a macro, since it means one number, and nothing else.
  bool is_macro(const std::string &name) const { return macros_.contains(name); }
  /// Those of them with small letters: they are undefined again where more than our header is included.
  std::string undefined() const;
  /// A constant of a name that cannot be one in C.
  std::optional<Fault> find_fault(const Interface &interface) const;

 private:
  void add_program(const Program &it);
  void add(const std::string &name, const Number &number);

  std::set<std::string> members_, others_;  ///< what else there is: fields and arms; types, constants, enumerators
  std::map<std::string, Number> macros_;
  std::set<std::string> ambiguous_;  ///< more than one number
};

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

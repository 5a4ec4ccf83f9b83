// SPDX-License-Identifier: BSD-3-Clause
// How things are called in the Python that is made of an interface.
#pragma once

#include "xdr/idl/graph.hpp"
#include "xdr/idl/model.hpp"

#include <set>
#include <string>
#include <string_view>

namespace xdr::idl {

/// Names that Python, or what is made for it, keeps for itself get a _ at their end.
std::string python_name(const std::string &name);
std::string python_enumerator(const std::string &name);
/// Of a method of the stubs.
std::string python_procedure(const std::string &name);

/// What a reader, and a type checker, is told: "int", "list[point] | None".
std::string python_annotation(const TypeGraph &graph, const Type &type);
std::string python_annotation(const TypeGraph &graph, const Declaration &declaration);

/// Other names of types, for classes that have members called as those are: type checkers take the member there.
class PythonAliases {
 public:
  /// The annotation as it stands in a class with these members.
  std::string beside(const std::set<std::string> &members, std::string_view annotation);
  /// The statements that make those that were used, for the end of the module.
  std::string statements() const;

 private:
  std::set<std::string> used_;
};

/// The codec of a type, in nessie.xdr's words. kVoid: None.
std::string python_codec(const Type &type);

std::string python_number(const Number &number);

}  // namespace xdr::idl

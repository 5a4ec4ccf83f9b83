// SPDX-License-Identifier: BSD-3-Clause
// How things are called in the Python that is made of an interface.
#pragma once

#include "xdr/idl/graph.hpp"
#include "xdr/idl/model.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace xdr::idl {

/// The names of one scope. Those that Python, or what is made for it, keeps for itself get a _ at their end, and as
/// many as there must be where the interface has that name, too. One that a class would not have under its name, since
/// it begins with _, gets an x before it.
class PythonNames {
 public:
  /// kMembers: of a struct or a union; kProgram: a program's versions; kStubs: a version's procedures.
  enum class Scope { kModule, kEnum, kMembers, kProgram, kStubs };
  /// Names that need not change go first.
  PythonNames(Scope scope, const std::vector<std::string> &names);

  const std::string &at(const std::string &name) const { return names_.at(name); }
  /// Of something that is made besides: `wanted`, with a _ at its end while that is taken.
  std::string claim(std::string wanted);
  const std::set<std::string> &taken() const { return taken_; }

 private:
  std::map<std::string, std::string> names_;
  std::set<std::string> taken_;
};

/// What an interface is called by a module: its own level.
struct PythonModule {
  explicit PythonModule(const Interface &interface);

  const std::string &name(const std::string &name) const { return names.at(name); }

  const TypeGraph graph;
  PythonNames names;
};

/// The module's file, of the interface's: "my-service" is imported as my_service.
std::string python_module_name(const std::string &stem);
/// Why a module of this name cannot be imported; none: it can.
std::optional<std::string> python_module_fault(const std::string &name);

/// What a reader, and a type checker, is told: "int", "list[point] | None".
std::string python_annotation(const PythonModule &module, const Type &type);
std::string python_annotation(const PythonModule &module, const Declaration &declaration);

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
std::string python_codec(const PythonModule &module, const Type &type);

std::string python_number(const Number &number);

}  // namespace xdr::idl

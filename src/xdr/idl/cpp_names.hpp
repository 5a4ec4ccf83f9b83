// SPDX-License-Identifier: BSD-3-Clause
// How things of an interface are called in C++.
#pragma once

#include "xdr/idl/model.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace xdr::idl {

/// A name that C++, or what is generated, uses itself gets a '_' at its end.
std::string cpp_name(const std::string &name);
/// The names of one scope: as cpp_name() says, with as many '_' more as keep them apart.
class CppScope {
 public:
  /// `owner`, the type, if not empty, has its name already.
  CppScope(const std::string &owner, const std::vector<std::string> &names);
  explicit CppScope(const Enum &it);
  explicit CppScope(const Struct &it);
  explicit CppScope(const Union &it);
  /// Its procedures, beside what is generated for it; NAME_async is NAME's, too.
  explicit CppScope(const Version &it);
  const std::string &operator[](const std::string &name) const { return names_.at(name); }

 private:
  std::map<std::string, std::string> names_;
};
/// The element type of a declaration, or an argument or result. `name_space`, if not empty, goes before a type's name.
std::string cpp_type(const Type &type, const std::string &name_space);
/// Whether a namespace can be called so.
bool is_cpp_namespace(std::string_view name);

}  // namespace xdr::idl

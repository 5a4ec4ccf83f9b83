// SPDX-License-Identifier: BSD-3-Clause
// How things of an interface are called in C++.
#pragma once

#include "xdr/idl/model.hpp"

#include <string>
#include <string_view>

namespace xdr::idl {

/// A name that C++, or what is generated, uses itself gets a '_' at its end.
std::string cpp_name(const std::string &name);
/// Likewise of a procedure, beside what is generated for its version.
std::string cpp_procedure(const std::string &name);
/// The element type of a declaration, or an argument or result. `name_space`, if not empty, goes before a type's name.
std::string cpp_type(const Type &type, const std::string &name_space);
/// Whether a namespace can be called so.
bool is_cpp_namespace(std::string_view name);

}  // namespace xdr::idl

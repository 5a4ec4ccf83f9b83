// SPDX-License-Identifier: BSD-3-Clause
// How things are called in the Python that is made of an interface.
#pragma once

#include "xdr/idl/graph.hpp"
#include "xdr/idl/model.hpp"

#include <string>

namespace xdr::idl {

/// Names that Python, or what is made for it, keeps for itself get a _ at their end.
std::string python_name(const std::string &name);
std::string python_enumerator(const std::string &name);
/// Of a method of the stubs.
std::string python_procedure(const std::string &name);

/// What a reader, and a type checker, is told: "int", "list[point] | None".
std::string python_annotation(const TypeGraph &graph, const Type &type);
std::string python_annotation(const TypeGraph &graph, const Declaration &declaration);

/// The codec of a type, in nessie.xdr's words. kVoid: None.
std::string python_codec(const Type &type);

std::string python_number(const Number &number);

}  // namespace xdr::idl

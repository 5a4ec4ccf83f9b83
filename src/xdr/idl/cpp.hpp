// SPDX-License-Identifier: BSD-3-Clause
// C++ types that encode and decode themselves (src/xdr/codec.hpp), from an interface. README.md has the table.
#pragma once

#include "xdr/idl/model.hpp"

#include <string>

namespace xdr::idl {

struct CppOptions {
  std::string file;        ///< the interface's, for the first line
  std::string name_space;  ///< a C++ namespace; "a::b" is possible
};

/// A header. `interface` has been checked.
std::string make_cpp(const Interface &interface, const CppOptions &options);

/// Whether a namespace can be called so.
bool is_cpp_namespace(std::string_view name);

}  // namespace xdr::idl

// SPDX-License-Identifier: BSD-3-Clause
// C++ types that encode and decode themselves (src/xdr/codec.hpp), from an interface. README.md has the table.
#pragma once

#include "xdr/idl/model.hpp"

#include <optional>
#include <string>

namespace xdr::idl {

struct CppOptions {
  std::string file;        ///< the interface's, for the first line
  std::string stem;        ///< what the headers' names begin with
  std::string name_space;  ///< a C++ namespace; "a::b" is possible
};

/// `interface` has been checked. What C++ could not say; none: what follows may be called.
std::optional<Fault> check_cpp(const Interface &interface);

/// A header.
std::string make_cpp(const Interface &interface, const CppOptions &options);

/// A header with the client's and the server's side of its programs. Empty: it has none.
std::string make_cpp_rpc(const Interface &interface, const CppOptions &options);

}  // namespace xdr::idl

// SPDX-License-Identifier: BSD-3-Clause
// What an interface becomes in each language. README.md has the tables. Each interface has been checked by check()
// before, and by its language's check_NAME(), which says what that could not: none, what follows may be called.
#pragma once

#include "xdr/idl/model.hpp"

#include <optional>
#include <string>

namespace xdr::idl {

struct Options {
  std::string file;             ///< the interface's, for the first line
  std::string stem = {};        ///< what the names of files, modules and guards begin with
  std::string name_space = {};  ///< of C++; "a::b" is possible
};

/// Types and their XDR functions, as rpcgen makes them.
std::optional<Fault> check_c(const Interface &interface);
std::string make_c_header(const Interface &interface, const Options &options);
std::string make_c_codec(const Interface &interface, const Options &options);
/// The client's and the server's side of its programs. Empty: it has none.
std::string make_c_rpc_header(const Interface &interface, const Options &options);
std::string make_c_rpc(const Interface &interface, const Options &options);

/// A header of types that encode and decode themselves (src/xdr/codec.hpp).
std::optional<Fault> check_cpp(const Interface &interface);
std::string make_cpp(const Interface &interface, const Options &options);
/// A header with the client's and the server's side of its programs. Empty: it has none.
std::string make_cpp_rpc(const Interface &interface, const Options &options);

/// A module of types that encode themselves, and one of stubs if there are programs.
std::optional<Fault> check_fortran(const Interface &interface);
std::string make_fortran(const Interface &interface, const Options &options);

/// A module with types that encode and decode themselves (bindings/python), and stubs.
std::string make_python(const Interface &interface, const Options &options);

}  // namespace xdr::idl

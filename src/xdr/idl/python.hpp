// SPDX-License-Identifier: BSD-3-Clause
// A module of Python's, with types that encode and decode themselves (bindings/python), from an interface. README.md
// has the table.
#pragma once

#include "xdr/idl/model.hpp"
#include "xdr/idl/python_names.hpp"

#include <string>

namespace xdr::idl {

struct PythonOptions {
  std::string file;  ///< the interface's, for the first line
};

/// The module. `interface` has been checked.
std::string make_python(const Interface &interface, const PythonOptions &options);

/// The part of it that has the client's and the server's side of the programs. Empty: there are none.
std::string make_python_rpc(const Interface &interface, PythonModule &module, PythonAliases &aliases);

}  // namespace xdr::idl

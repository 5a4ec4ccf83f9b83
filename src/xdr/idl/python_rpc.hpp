// SPDX-License-Identifier: BSD-3-Clause
// The part of Python's module that has the client's and the server's side of the programs.
#pragma once

#include "xdr/idl/python_names.hpp"

#include <string>

namespace xdr::idl {

/// Empty: there are no programs.
std::string make_python_rpc(const Interface &interface, PythonModule &module, PythonAliases &aliases);

}  // namespace xdr::idl

// SPDX-License-Identifier: BSD-3-Clause
// Fortran from an interface: a module of types that encode themselves, and one of stubs. README.md has the table.
#pragma once

#include "xdr/idl/fortran_options.hpp"
#include "xdr/idl/model.hpp"

#include <optional>
#include <string>

namespace xdr::idl {

/// `interface` has been checked. The first of its types that Fortran cannot have; none: make_fortran() may be called.
std::optional<Fault> check_fortran(const Interface &interface);

/// Both modules, the second only if there are programs.
std::string make_fortran(const Interface &interface, const FortranOptions &options);

}  // namespace xdr::idl

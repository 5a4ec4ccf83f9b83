// SPDX-License-Identifier: BSD-3-Clause
// The second module: stubs and skeletons of an interface's programs.
#pragma once

#include "xdr/idl/fortran_statements.hpp"
#include "xdr/idl/languages.hpp"

#include <string>

namespace xdr::idl {

/// What the module of types was made with: one scope of names for both.
struct FortranModule {
  const FortranTypes &types;
  FortranStatements &statements;
  FortranNames &names;
  std::string name;
};

/// Empty: there are no programs.
std::string make_fortran_rpc(const Interface &interface, const Options &options, const FortranModule &module);

}  // namespace xdr::idl

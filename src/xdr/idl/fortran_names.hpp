// SPDX-License-Identifier: BSD-3-Clause
// How things of an interface are called in Fortran, and how its lines are written.
#pragma once

#include "xdr/idl/lexer.hpp"

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace xdr::idl {

/// The names of one scope. Fortran does not tell upper from lower case, and takes 63 characters.
class FortranNames {
 public:
  FortranNames() = default;
  /// Takes what a module, or what is generated into it, uses itself.
  static FortranNames of_module();

  /// `wanted`, or what is nearest to it: one that is taken already gets a `_` or `_2`, `_3`, … at its end; one that is
  /// too long ends with a number made of all of it; one that begins with `_` gets an `x` before it. Those that begin as
  /// Nessie's own do are taken in a module.
  std::string claim(const std::string &wanted);
  /// Of a derived type: none that a variable of generated code has, either.
  std::string claim_type(const std::string &wanted);

 private:
  bool is_kept(const std::string &name) const;
  bool take(const std::string &name);

  std::set<std::string> taken_;  ///< in lower case
  bool keeps_prefixes_ = false;
};

/// As integer(c_int32_t) or integer(c_int64_t), by the bytes that the number has.
std::string fortran_literal(const Number &number, int bytes);
/// Whether a constant of the interface needs 8 bytes.
bool is_fortran_hyper(const Number &number);

/// Of bytes: a literal of the default kind where that holds it, as nearly always.
std::string fortran_count(std::uint64_t count);

/// Ends with a line break; continued on others where it would be too long. String constants have no spaces, or fit.
std::string fortran_line(int indent, std::string_view text);

}  // namespace xdr::idl

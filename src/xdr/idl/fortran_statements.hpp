// SPDX-License-Identifier: BSD-3-Clause
// Statements that size, write or read one value, whatever it is: fields, arguments, results.
#pragma once

#include "xdr/idl/fortran_types.hpp"

#include <compare>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace xdr::idl {

/// A form in which a derived type is used: each has procedures of its own.
struct FortranUse {
  std::string type;
  FortranForm::Layout layout;  ///< kListOrNone never: that is a kList
  bool is_pointer;

  auto operator<=>(const FortranUse &) const = default;  // NOLINT(modernize-use-nullptr): of what the compiler makes
};

class FortranStatements {
 public:
  /// Both outlive it. `names` are the module's.
  FortranStatements(const FortranTypes &types, FortranNames &names) : types_(types), names_(names) {}

  /// `at` is the value. What has a fixed size is counted in `fixed_bytes` and not in a statement.
  std::string size(const FortranForm &form, const std::string &at, std::uint64_t &fixed_bytes);
  std::string put(const FortranForm &form, const std::string &at);
  std::string get(const FortranForm &form, const std::string &at);
  /// As size() and put(), of an argument: strings and arrays are not allocatable there.
  std::string size_argument(const FortranForm &form, const std::string &at, std::uint64_t &fixed_bytes);
  std::string put_argument(const FortranForm &form, const std::string &at);
  /// What its pointers point to; empty: there are none in it.
  std::string free(const FortranForm &form, const std::string &at);

  /// Notes that there must be procedures for it.
  void use(const FortranForm &form);
  const std::set<FortranUse> &uses() const { return uses_; }
  /// "put_array_tree": the one that does `verb` ("put") to it; claimed when it is asked for first.
  std::string procedure(const std::string &verb, const FortranUse &use);
  /// Whether an enum has a name for a value.
  std::string check(const std::string &name_of_enum);

 private:
  std::string call(const std::string &verb, const FortranForm &form, const std::string &at,
                   const std::string &more = {});
  std::string check_enum(const FortranForm &form, const std::string &at, const std::string &cursor);

  const FortranTypes &types_;
  FortranNames &names_;
  std::set<FortranUse> uses_;
  std::map<std::pair<std::string, FortranUse>, std::string> procedures_;  ///< by verb and use
  std::map<std::string, std::string> checks_;
};

/// "allocatable", or what goes instead; "associated" likewise.
std::string fortran_attribute(bool is_pointer, FortranForm::Layout layout);
std::string fortran_has(bool is_pointer);
/// "xdr_any", or a bound.
std::string fortran_bound(const FortranForm &form);
/// Allocates `what`, or refuses what is read and returns; with `failed`, an integer.
std::string fortran_allocate(int indent, std::string_view what);
/// "_array": what the procedures for a layout have at the end of their generic names.
std::string fortran_suffix(FortranForm::Layout layout);

}  // namespace xdr::idl

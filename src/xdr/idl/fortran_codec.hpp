// SPDX-License-Identifier: BSD-3-Clause
// The procedures that a module of types is made of.
#pragma once

#include "xdr/idl/fortran_statements.hpp"

#include <map>
#include <string>
#include <vector>

namespace xdr::idl {

class FortranCodec {
 public:
  /// All outlive it.
  FortranCodec(const Interface &interface, const FortranTypes &types, FortranStatements &statements)
      : interface_(interface), types_(types), statements_(statements) {}

  /// What goes behind `contains`.
  std::string write();
  /// After write(): the procedures of each generic name.
  const std::map<std::string, std::vector<std::string>> &generics() const { return generics_; }

 private:
  void write_check(const Enum &it);
  void write_type(const std::string &key);
  void write_size(const std::string &key);
  void write_put(const std::string &key);
  void write_get(const std::string &key);
  void write_free(const std::string &key);
  void write_whole(const std::string &key);
  std::string of_arms(const FortranType &type, const std::vector<std::string> &bodies, const std::string &otherwise);
  std::string of_fields(const FortranType &type, const std::vector<std::string> &parts, const std::string &otherwise);
  void write_use(const FortranUse &use);
  void write_vector(const FortranUse &use);
  void write_array(const FortranUse &use);
  void write_optional(const FortranUse &use);
  void write_list(const FortranUse &use);
  std::string begin(const std::string &verb, const FortranUse &use, const std::string &declarations,
                    const std::string &more = {});
  void end() { out_ += "  end subroutine\n"; }
  std::string freeing(const FortranUse &use);

  const Interface &interface_;
  const FortranTypes &types_;
  FortranStatements &statements_;
  std::map<std::string, std::vector<std::string>> generics_;
  std::string out_;
};

}  // namespace xdr::idl

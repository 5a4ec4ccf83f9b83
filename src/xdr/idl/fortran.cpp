// SPDX-License-Identifier: BSD-3-Clause
#include "xdr/idl/fortran_codec.hpp"
#include "xdr/idl/fortran_rpc.hpp"
#include "xdr/idl/languages.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace xdr::idl {
namespace {

using Element = FortranForm::Element;
using Layout = FortranForm::Layout;

/// What a component is before anything is assigned to it.
std::string initial(const FortranForm &form) {
  if (form.is_pointer) return " => null()";
  if (form.layout != Layout::kScalar && form.layout != Layout::kVector) return {};
  switch (form.element) {
    case Element::kString:
    case Element::kDerived: return {};
    case Element::kLogical: return " = .false.";
    case Element::kFloat: return " = 0.0_c_float";
    case Element::kDouble: return " = 0.0_c_double";
    default: return " = 0";
  }
}

class ModuleWriter {
 public:
  ModuleWriter(const Interface &interface, const Options &options)
      : interface_(interface), options_(options), names_(FortranNames::of_module()) {}

  std::string write() {
    const auto module = names_.claim(options_.stem + "_xdr");
    const FortranTypes types(interface_, names_);
    for (const auto &definition : interface_.definitions) write_constants(definition);
    FortranStatements statements(types, names_);
    FortranCodec codec(interface_, types, statements);
    for (const auto &key : types.in_order()) write_type(types, types.at(key));
    const auto procedures = codec.write();
    write_generics(codec, statements);
    const auto stubs = make_fortran_rpc(interface_, options_, {types, statements, names_, module});
    return fmt::format("! Made by `nessie idl` from {}; changes will be lost.\n", options_.file) +
           fmt::format("module {}\n", module) +
           "  use, intrinsic :: iso_c_binding, only: c_int8_t, c_int32_t, c_int64_t, c_float, c_double\n"
           "  use nessie, only: nessie_status\n  use nessie_xdr\n  implicit none\n  private\n\n" +
           out_ + (procedures.empty() ? "" : "\ncontains\n\n" + procedures) + "end module\n" + stubs;
  }

 private:
  void publish(const std::string &name) { out_ += fortran_line(2, fmt::format("public :: {}", name)); }

  void write_constant(const std::string &name, const Number &number, int bytes) {
    out_ +=
        fortran_line(2, fmt::format("integer({}), parameter, public :: {} = {}", bytes == 8 ? "c_int64_t" : "c_int32_t",
                                    names_.claim(name), fortran_literal(number, bytes)));
  }
  void write_constants(const Definition &definition) {
    if (const auto *it = std::get_if<Constant>(&definition))
      write_constant(it->name, it->value.number, is_fortran_hyper(it->value.number) ? 8 : 4);
    const auto *it = std::get_if<Enum>(&definition);
    if (it == nullptr) return;
    out_ += fmt::format("\n  ! enum {}\n", it->name);
    for (const auto &each : it->enumerators) write_constant(each.name, each.number, 4);
  }

  static std::string attributes(const FortranForm &form) {
    const bool is_apart = form.layout != Layout::kScalar && form.layout != Layout::kVector;
    if (form.is_pointer) return ", " + fortran_attribute(true, form.layout);
    return is_apart || form.is_arm || (form.element == Element::kString) ? ", allocatable" : "";
  }
  static std::string shape(const FortranForm &form) {
    if (form.layout == Layout::kScalar || form.layout == Layout::kOptional) return {};
    return form.layout == Layout::kVector ? fmt::format("({})", *form.size) : "(:)";
  }
  void write_type(const FortranTypes &types, const FortranType &type) {
    out_ += "\n";
    out_ += fortran_line(2, fmt::format("type{}, public :: {}", type.plain ? ", bind(C)" : "", type.name));
    for (const auto &[name, form] : type.fields)
      out_ += fortran_line(4, fmt::format("{}{} :: {}{}{}", types.element_type(form), attributes(form), name,
                                          shape(form), first_value(type, name, form)));
    out_ += "  end type\n";
  }
  /// A union begins with its first arm.
  static std::string first_value(const FortranType &type, const std::string &name, const FortranForm &form) {
    if (type.of_union == nullptr || name != type.fields.front().name) return initial(form);
    const auto &number = type.of_union->arms.front().cases.front().number;
    if (form.element == Element::kLogical) return number.magnitude == 0 ? " = .false." : " = .true.";
    return " = " + fortran_literal(number, 4);
  }

  void write_generics(const FortranCodec &codec, FortranStatements &statements) {
    for (const auto &definition : interface_.definitions)
      if (const auto *it = std::get_if<Enum>(&definition)) publish(statements.check(it->name));
    for (const auto &[generic, procedures] : codec.generics()) {
      out_ += fmt::format("\n  public :: {0}\n  interface {0}\n", generic);
      for (const auto &procedure : procedures)
        out_ += fortran_line(4, fmt::format("module procedure :: {}", procedure));
      out_ += "  end interface\n";
    }
  }

  const Interface &interface_;
  const Options &options_;
  FortranNames names_;
  std::string out_;
};

/// What a type begins as is part of the program, whose data have to be within reach of 32 bits.
constexpr double kMostBytesOfType = 2147483647;

}  // namespace

std::optional<Fault> check_fortran(const Interface &interface) {
  auto names = FortranNames::of_module();
  const FortranTypes types(interface, names);
  for (const auto &key : types.in_order())
    if (const auto &type = types.at(key); type.size_bytes > kMostBytesOfType)
      return Fault{type.at, fmt::format("'{}' has more bytes than a type may have in Fortran, {:.0f}; arrays that are "
                                        "declared with <> may be larger",
                                        key, kMostBytesOfType)};
  return std::nullopt;
}

std::string make_fortran(const Interface &interface, const Options &options) {
  return ModuleWriter(interface, options).write();
}

}  // namespace xdr::idl

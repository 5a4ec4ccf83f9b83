// SPDX-License-Identifier: BSD-3-Clause
#include "xdr/idl/fortran_statements.hpp"

#include <fmt/format.h>

namespace xdr::idl {
namespace {

using Element = FortranForm::Element;
using Layout = FortranForm::Layout;

constexpr int kIndent = 4;

std::string line(std::string_view text, int deeper = 0) { return fortran_line(kIndent + deeper, text); }

/// Behind a value in a call that sizes or reads it.
std::string limits(const FortranForm &form) {
  if (form.layout == Layout::kArray || (form.layout == Layout::kScalar && form.element == Element::kString))
    return ", " + fortran_bound(form);
  if (form.layout == Layout::kList) return ", .false.";
  return form.layout == Layout::kListOrNone ? ", .true." : "";
}
bool is_text(const FortranForm &form) { return form.element == Element::kString && form.layout == Layout::kScalar; }
bool is_octets(const FortranForm &form) { return form.element == Element::kOpaque && form.layout == Layout::kArray; }
std::string list_flag(const FortranForm &form) {
  const bool is_list = form.layout == Layout::kList || form.layout == Layout::kListOrNone;
  return is_list ? limits(form) : "";
}

}  // namespace

std::string fortran_attribute(bool is_pointer, Layout layout) {
  if (!is_pointer) return "allocatable";
  return layout == Layout::kOptional ? "pointer" : "pointer, contiguous";
}
std::string fortran_has(bool is_pointer) { return is_pointer ? "associated" : "allocated"; }

std::string fortran_bound(const FortranForm &form) {
  return form.size ? fmt::format("{}_c_int64_t", *form.size) : "xdr_any";
}

std::string fortran_allocate(int indent, std::string_view what) {
  return fortran_line(indent, fmt::format("allocate ({}, stat=failed)", what)) +
         fortran_line(indent, "if (failed /= 0) then") +
         fortran_line(indent + 2, "call xdr_refuse(reader, xdr_no_memory)") + fortran_line(indent + 2, "return") +
         fortran_line(indent, "end if");
}

std::string fortran_suffix(Layout layout) {
  switch (layout) {
    case Layout::kScalar: return "";
    case Layout::kVector: return "_vector";
    case Layout::kArray: return "_array";
    case Layout::kOptional: return "_optional";
    default: return "_list";
  }
}

// --- which procedures there are ----------------------------------------------------------------------------------------------

void FortranStatements::use(const FortranForm &form) {
  if (form.element != Element::kDerived) return;
  const auto layout = form.layout == Layout::kListOrNone ? Layout::kList : form.layout;
  if (layout == Layout::kArray) uses_.insert({form.type, Layout::kVector, false});
  uses_.insert({form.type, layout, form.is_pointer});
}

std::string FortranStatements::procedure(const std::string &verb, const FortranUse &use) {
  auto &name = procedures_[{verb, use}];
  if (name.empty())
    name = names_.claim(fmt::format("{}{}{}_{}", verb, fortran_suffix(use.layout), use.is_pointer ? "_behind" : "",
                                    types_.at(use.type).name));
  return name;
}

std::string FortranStatements::check(const std::string &name_of_enum) {
  auto &name = checks_[name_of_enum];
  if (name.empty()) name = names_.claim("has_name_" + name_of_enum);
  return name;
}

/// By the generic name; those for pointers have none.
std::string FortranStatements::call(const std::string &verb, const FortranForm &form, const std::string &at,
                                    const std::string &more) {
  use(form);
  const auto cursor = verb == "size" ? "sizer" : verb == "put" ? "writer" : "reader";
  auto name = "xdr_" + verb + fortran_suffix(form.layout);
  if (form.is_pointer)
    name = procedure(verb, {form.type, form.layout == Layout::kListOrNone ? Layout::kList : form.layout, true});
  else if (form.element == Element::kString)
    name = fmt::format("xdr_{}_string", verb);
  else if (form.element == Element::kOpaque)
    name = fmt::format("xdr_{}_{}", verb, form.layout == Layout::kVector ? "opaque" : "bytes");
  return fmt::format("call {}({}, {}{})", name, cursor, at, more);
}

// --- statements ------------------------------------------------------------------------------------------------------------------

std::string FortranStatements::check_enum(const FortranForm &form, const std::string &at, const std::string &cursor) {
  if (form.element != Element::kEnum) return {};
  const auto named = fmt::format("{}({})", check(form.type), at);
  const bool is_one = form.layout == Layout::kScalar || form.layout == Layout::kOptional;
  const auto test = fmt::format("if (.not. {}) call xdr_refuse({}, xdr_bad_enum)",
                                is_one ? named : fmt::format("all({})", named), cursor);
  if (form.layout == Layout::kScalar || form.layout == Layout::kVector) return line(test);
  return line(fmt::format("if (allocated({})) then", at)) + line(test, 2) + line("end if");
}

std::string FortranStatements::size(const FortranForm &form, const std::string &at, std::uint64_t &fixed_bytes) {
  if (const auto bytes = types_.fixed_bytes(form)) {
    fixed_bytes += *bytes;
    return {};
  }
  if (form.element == Element::kEnum && (form.layout == Layout::kScalar || form.layout == Layout::kVector)) {
    fixed_bytes += 4 * (form.layout == Layout::kVector ? *form.size : 1);
    return check_enum(form, at, "sizer");
  }
  const auto statement = call("size", form, at, limits(form));
  if (!form.is_arm) return line(statement) + check_enum(form, at, "sizer");
  return line(fmt::format("if (allocated({})) then", at)) + line(statement, 2) + line("else") +
         line("call xdr_refuse(sizer, xdr_other_arm)", 2) + line("end if");
}

std::string FortranStatements::put(const FortranForm &form, const std::string &at) {
  const auto statement = call("put", form, at, list_flag(form));
  return line(form.is_arm ? fmt::format("if (allocated({})) {}", at, statement) : statement);
}

std::string FortranStatements::size_argument(const FortranForm &form, const std::string &at,
                                             std::uint64_t &fixed_bytes) {
  if (is_text(form) || is_octets(form))
    return line(
        fmt::format("call xdr_size_{}(sizer, {}, {})", is_text(form) ? "text" : "octets", at, fortran_bound(form)));
  if (form.layout != Layout::kArray) return size(form, at, fixed_bytes);
  use(form);
  auto one = form;
  one.layout = Layout::kScalar;
  const auto each = form.element == Element::kEnum ? std::optional<std::uint64_t>(4) : types_.fixed_bytes(one);
  auto made = line(fmt::format("call xdr_size_count(sizer, size({}, kind=c_int64_t), {}, {}_c_int64_t)", at,
                               fortran_bound(form), each.value_or(0)));
  if (!each) made += line(fmt::format("call xdr_size_vector(sizer, {})", at));
  one.layout = Layout::kVector;
  return made + check_enum(one, at, "sizer");
}

std::string FortranStatements::put_argument(const FortranForm &form, const std::string &at) {
  if (is_text(form) || is_octets(form))
    return line(fmt::format("call xdr_put_{}(writer, {})", is_text(form) ? "text" : "octets", at));
  if (form.layout != Layout::kArray) return put(form, at);
  return line(fmt::format("call xdr_put_count(writer, size({}, kind=c_int64_t))", at)) +
         line(fmt::format("call xdr_put_vector(writer, {})", at));
}

std::string FortranStatements::get(const FortranForm &form, const std::string &at) {
  const auto statement = call("get", form, at, limits(form));
  const auto made = form.is_arm ? fortran_allocate(kIndent, at) : std::string();
  return made + line(statement) + check_enum(form, at, "reader");
}

std::string FortranStatements::free(const FortranForm &form, const std::string &at) {
  if (form.element != Element::kDerived || !(form.is_pointer || types_.at(form.type).holds_pointers)) return {};
  if (!form.is_arm && form.layout == Layout::kScalar) return line(fmt::format("call xdr_free({})", at));
  std::string made;
  const bool is_one = form.layout == Layout::kScalar || form.layout == Layout::kOptional;
  if (is_one) {
    made = line(fmt::format("call xdr_free({})", at), 2);
  } else {
    made = line(fmt::format("do i = 1, size({}, kind=c_int64_t)", at), 2) +
           line(fmt::format("call xdr_free({}(i))", at), 4) + line("end do", 2);
  }
  if (form.layout == Layout::kVector) return made;
  if (form.is_pointer) made += line(fmt::format("deallocate ({})", at), 2);
  return line(fmt::format("if ({}({})) then", fortran_has(form.is_pointer), at)) + made + line("end if");
}

}  // namespace xdr::idl

// SPDX-License-Identifier: BSD-3-Clause
#include "xdr/idl/fortran_codec.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace xdr::idl {
namespace {

using Kind = Type::Kind;
using Element = FortranForm::Element;
using Layout = FortranForm::Layout;

const char *cursor_of(const std::string &verb) {
  return verb == "size" ? "sizer" : verb == "put" ? "writer" : "reader";
}

/// Statements within others.
std::string deeper(const std::string &statements) {
  std::string made;
  for (std::size_t at = 0; at < statements.size();) {
    const auto end = statements.find('\n', at) + 1;
    made += "  ";
    made.append(statements, at, end - at);
    at = end;
  }
  return made;
}

}  // namespace

std::string FortranCodec::write() {
  for (const auto &definition : interface_.definitions) {
    if (const auto *it = std::get_if<Enum>(&definition)) write_check(*it);
    const auto *program = std::get_if<Program>(&definition);
    if (program == nullptr) continue;
    for (const auto &version : program->versions)
      for (const auto &procedure : version.procedures) {
        if (procedure.result.kind != Kind::kVoid) statements_.use(types_.form_of(procedure.result));
        for (const auto &argument : procedure.arguments) statements_.use(types_.form_of(argument));
      }
  }
  for (const auto &key : types_.in_order()) write_type(key);
  for (const auto &use : statements_.uses()) write_use(use);
  return std::move(out_);
}

void FortranCodec::write_check(const Enum &it) {
  const auto name = statements_.check(it.name);
  out_ += fortran_line(2, fmt::format("elemental logical function {}(it)", name)) +
          "    integer(c_int32_t), intent(in) :: it\n    select case (it)\n";
  std::set<std::string> seen;  // of two names for one value, one will do
  for (const auto &each : it.enumerators)
    if (const auto value = fortran_literal(each.number, 4); seen.insert(value).second)
      out_ += fmt::format("    case ({})\n", value) + fortran_line(6, fmt::format("{} = .true.", name));
  out_ +=
      "    case default\n" + fortran_line(6, fmt::format("{} = .false.", name)) + "    end select\n  end function\n\n";
}

// --- types -----------------------------------------------------------------------------------------------------------------------

void FortranCodec::write_type(const std::string &key) {
  write_size(key);
  write_put(key);
  write_get(key);
  if (types_.at(key).holds_pointers) write_free(key);
  if (types_.at(key).kind != FortranType::Kind::kLink) write_whole(key);
  out_ += "\n";
}

/// The head of what does `verb` to a use of a type; the generic of that name gets it.
std::string FortranCodec::begin(const std::string &verb, const FortranUse &use, const std::string &declarations,
                                const std::string &more) {
  const auto name = statements_.procedure(verb, use);
  if (!use.is_pointer) generics_["xdr_" + verb + fortran_suffix(use.layout)].push_back(name);
  const bool is_free = verb == "free";
  const auto cursor = is_free ? "" : fmt::format("{}, ", cursor_of(verb));
  auto made = fortran_line(2, fmt::format("recursive subroutine {}({}it{})", name, cursor, more));
  if (!is_free)
    made += fortran_line(4, fmt::format("type(xdr_{}), intent(inout) :: {}", cursor_of(verb), cursor_of(verb)));
  const bool is_scalar = use.layout == Layout::kScalar || use.layout == Layout::kOptional;
  const auto attribute = use.layout == Layout::kScalar   ? ""
                         : use.layout == Layout::kVector ? ", contiguous"
                                                         : ", " + fortran_attribute(use.is_pointer, use.layout);
  const auto intent = verb == "size" || verb == "put" ? "in" : "inout";
  made += fortran_line(4, fmt::format("type({}){}, intent({}) :: it{}", types_.at(use.type).name, attribute, intent,
                                      is_scalar ? "" : "(:)"));
  return made + declarations;
}

/// `bodies`: one for each case; that of the union's arms.
std::string FortranCodec::of_arms(const FortranType &type, const std::vector<std::string> &bodies,
                                  const std::string &otherwise) {
  const auto &on = type.fields.front();
  auto made = fortran_line(4, fmt::format("select case (it%{})", on.name));
  const auto &arms = type.of_union->arms;
  for (std::size_t i = 0; i < arms.size(); ++i) {
    std::string labels;
    for (const auto &each : arms[i].cases) {
      const auto truth = each.number.magnitude == 0 ? ".false." : ".true.";
      labels += (labels.empty() ? "" : ", ") +
                (on.form.element == Element::kLogical ? truth : fortran_literal(each.number, 4));
    }
    made += fortran_line(4, labels.empty() ? "case default" : fmt::format("case ({})", labels)) + deeper(bodies[i]);
  }
  const bool names_all = on.form.element == Element::kLogical && arms.size() == 2;
  if (!arms.back().cases.empty() && !otherwise.empty() && !names_all)
    made += fortran_line(4, "case default") + fortran_line(6, otherwise);
  return made + fortran_line(4, "end select");
}

/// `parts`: one for each field; those of arms become their cases.
std::string FortranCodec::of_fields(const FortranType &type, const std::vector<std::string> &parts,
                                    const std::string &otherwise) {
  if (type.of_union == nullptr) return fmt::format("{}", fmt::join(parts, ""));
  std::vector<std::string> bodies;
  std::size_t field = 1;
  for (const auto &arm : type.of_union->arms)
    bodies.push_back(arm.declaration.type.kind == Kind::kVoid ? "" : parts[field++]);
  return parts.front() + of_arms(type, bodies, otherwise);
}

void FortranCodec::write_size(const std::string &key) {
  const auto &type = types_.at(key);
  std::uint64_t fixed_bytes = 0;
  std::string statements;
  if (type.of_union == nullptr) {
    for (const auto &field : type.fields) statements += statements_.size(field.form, "it%" + field.name, fixed_bytes);
  } else {
    statements += statements_.size(type.fields.front().form, "it%" + type.fields.front().name, fixed_bytes);
    if (type.fields.front().form.element == Element::kLogical) fixed_bytes = 4;
    std::vector<std::string> bodies;
    std::size_t field = 1;
    for (const auto &arm : type.of_union->arms) {
      bodies.emplace_back();
      if (arm.declaration.type.kind == Kind::kVoid) continue;
      std::uint64_t bytes = 0;
      bodies.back() = statements_.size(type.fields[field].form, "it%" + type.fields[field].name, bytes);
      if (bytes != 0)
        bodies.back() += fortran_line(4, fmt::format("sizer%size_bytes = sizer%size_bytes + {}", fortran_count(bytes)));
      ++field;
    }
    statements += of_arms(type, bodies, "call xdr_refuse(sizer, xdr_bad_arm)");
  }
  out_ += begin("size", {key, Layout::kScalar, false}, {});
  if (statements.empty())
    out_ +=
        fmt::format("    associate (unused => it{})\n    end associate\n", fixed_bytes == 0 ? ", alike => sizer" : "");
  if (fixed_bytes != 0)
    out_ += fortran_line(4, fmt::format("sizer%size_bytes = sizer%size_bytes + {}", fortran_count(fixed_bytes)));
  out_ += statements;
  end();
}

void FortranCodec::write_put(const std::string &key) {
  const auto &type = types_.at(key);
  out_ += begin("put", {key, Layout::kScalar, false}, {});
  if (type.fields.empty()) out_ += "    associate (unused => it, alike => writer)\n    end associate\n";
  std::vector<std::string> parts;
  for (const auto &field : type.fields) parts.push_back(statements_.put(field.form, "it%" + field.name));
  out_ += of_fields(type, parts, {});
  end();
}

void FortranCodec::write_get(const std::string &key) {
  const auto &type = types_.at(key);
  const bool is_level = type.kind == FortranType::Kind::kStruct || type.kind == FortranType::Kind::kUnion;
  const bool has_arms = std::ranges::any_of(type.fields, [](const auto &field) { return field.form.is_arm; });
  out_ += begin("get", {key, Layout::kScalar, false}, has_arms ? "    integer :: failed\n" : "");
  if (type.fields.empty()) out_ += "    associate (unused => it, alike => reader)\n    end associate\n";
  if (is_level) out_ += "    if (.not. xdr_enter(reader)) return\n";
  std::vector<std::string> parts;
  for (const auto &field : type.fields) {
    parts.push_back(statements_.get(field.form, "it%" + field.name));
    if (field.form.is_arm)
      out_ += fortran_line(4, fmt::format("if (allocated(it%{0})) deallocate (it%{0})", field.name));
  }
  out_ += of_fields(type, parts, "call xdr_refuse(reader, xdr_bad_arm)");
  if (is_level) out_ += "    call xdr_leave(reader)\n";
  end();
}

void FortranCodec::write_free(const std::string &key) {
  std::string statements;
  for (const auto &field : types_.at(key).fields) statements += statements_.free(field.form, "it%" + field.name);
  const bool loops = statements.find("do i = ") != std::string::npos;
  out_ += begin("free", {key, Layout::kScalar, false}, loops ? "    integer(c_int64_t) :: i\n" : "") + statements;
  end();
}

/// What programs call.
void FortranCodec::write_whole(const std::string &key) {
  const FortranUse use{key, Layout::kScalar, false};
  const auto encode = statements_.procedure("encode", use), decode = statements_.procedure("decode", use);
  generics_["xdr_encode"].push_back(encode);
  generics_["xdr_decode"].push_back(decode);
  const auto type = fmt::format("type({})", types_.at(key).name);
  out_ += fortran_line(2, fmt::format("recursive function {}(it, bytes) result(status)", encode)) +
          fortran_line(4, fmt::format("{}, intent(in) :: it", type)) +
          "    integer(c_int8_t), allocatable, intent(inout) :: bytes(:)\n"
          "    integer(c_int8_t), allocatable, target :: made(:)\n"
          "    type(nessie_status) :: status\n    type(xdr_sizer) :: sizer\n    type(xdr_writer) :: writer\n"
          "    call xdr_size(sizer, it)\n    status = xdr_prepare(sizer, made, writer)\n"
          "    if (.not. status%ok()) return\n    call xdr_put(writer, it)\n    call move_alloc(made, bytes)\n  end "
          "function\n" +
          fortran_line(2, fmt::format("recursive function {}(bytes, it) result(status)", decode)) +
          "    integer(c_int8_t), intent(in), target, contiguous :: bytes(:)\n" +
          fortran_line(4, fmt::format("{}, intent(inout) :: it", type)) +
          "    type(nessie_status) :: status\n    type(xdr_reader) :: reader\n    reader = xdr_reader_of(bytes)\n"
          "    call xdr_get(reader, it)\n    status = xdr_finish(reader)\n  end function\n";
}

// --- arrays of them, optional ones, lists ------------------------------------------------------------------------------------------

void FortranCodec::write_use(const FortranUse &use) {
  switch (use.layout) {
    case Layout::kScalar: return;
    case Layout::kVector: write_vector(use); break;
    case Layout::kArray: write_array(use); break;
    case Layout::kOptional: write_optional(use); break;
    default: write_list(use);
  }
  out_ += "\n";
}

void FortranCodec::write_vector(const FortranUse &use) {
  const std::string index = "    integer(c_int64_t) :: i\n";
  const auto &plain = types_.at(use.type).plain;
  for (const std::string verb : {"size", "put", "get"}) {
    if (plain && verb != "size") {
      const bool is_words = plain->wide == 0;
      out_ += begin(verb, use, {}) +
              fortran_line(4, fmt::format("call xdr_{}_{}({}, it, {}size(it, kind=c_int64_t){})", verb,
                                          is_words ? "words" : "structs", cursor_of(verb),
                                          is_words ? fmt::format("{} * ", plain->size_bytes / 4) : "",
                                          is_words ? ""
                                                   : fmt::format(", {}, {}", plain->size_bytes / 8,
                                                                 fortran_literal({plain->wide, false}, 4))));
    } else {
      out_ += begin(verb, use, index) + "    do i = 1, size(it, kind=c_int64_t)\n" +
              (verb == "get" ? "      if (xdr_failed(reader)) return\n" : "") +
              fmt::format("      call xdr_{}({}, it(i))\n    end do\n", verb, cursor_of(verb));
    }
    end();
  }
}

/// What was there before it is read; with `i`.
std::string FortranCodec::freeing(const FortranUse &use) {
  FortranForm form;
  form.element = Element::kDerived;
  form.type = use.type;
  form.layout = use.layout;
  form.is_pointer = use.is_pointer;
  if (use.is_pointer) return statements_.free(form, "it");
  return statements_.free(form, "it") + "    if (allocated(it)) deallocate (it)\n";
}

void FortranCodec::write_array(const FortranUse &use) {
  const auto has = fortran_has(use.is_pointer);
  const std::string count = "    integer(c_int64_t) :: count\n", most = "    integer(c_int64_t), intent(in) :: most\n";
  FortranForm one;
  one.element = Element::kDerived;
  one.type = use.type;
  const auto fixed = types_.fixed_bytes(one);
  out_ += begin("size", use, most + count, ", most") + "    count = 0\n" +
          fmt::format("    if ({}(it)) count = size(it, kind=c_int64_t)\n", has) +
          fmt::format("    call xdr_size_count(sizer, count, most, {}_c_int64_t)\n", fixed.value_or(0));
  if (!fixed) out_ += "    if (count > 0) call xdr_size_vector(sizer, it)\n";
  end();
  out_ += begin("put", use, {}) +
          fmt::format(
              "    if ({}(it)) then\n      call xdr_put_count(writer, size(it, kind=c_int64_t))\n"
              "      call xdr_put_vector(writer, it)\n    else\n      call xdr_put(writer, 0_c_int32_t)\n    end if\n",
              has);
  end();
  const auto before = freeing(use);
  const bool loops = before.find("do i = ") != std::string::npos;
  out_ += begin("get", use, most + (loops ? "    integer(c_int64_t) :: count, i\n" : count) + "    integer :: failed\n",
                ", most") +
          before +
          fmt::format(
              "    count = xdr_get_count(reader, most, {}_c_int64_t)\n    allocate (it(count), stat=failed)\n"
              "    if (failed /= 0) then\n      call xdr_refuse(reader, xdr_no_memory)\n    else\n"
              "      call xdr_get_vector(reader, it)\n    end if\n",
              types_.at(use.type).least_bytes);
  end();
}

void FortranCodec::write_optional(const FortranUse &use) {
  const auto has = fortran_has(use.is_pointer);
  out_ += begin("size", use, {}) + "    sizer%size_bytes = sizer%size_bytes + 4\n" +
          fmt::format("    if ({}(it)) call xdr_size(sizer, it)\n", has);
  end();
  out_ += begin("put", use, {}) + fmt::format("    call xdr_put(writer, {}(it))\n", has) +
          fmt::format("    if ({}(it)) call xdr_put(writer, it)\n", has);
  end();
  out_ += begin("get", use, "    integer :: failed\n") + freeing(use) + (use.is_pointer ? "    nullify (it)\n" : "") +
          "    if (.not. xdr_get_flag(reader)) return\n" + fortran_allocate(4, "it") + "    call xdr_get(reader, it)\n";
  end();
}

/// Link after link, each followed by whether there is a next one; all of them nest as one struct does.
void FortranCodec::write_list(const FortranUse &use) {
  const auto has = fortran_has(use.is_pointer), attribute = fortran_attribute(use.is_pointer, use.layout);
  const auto type = types_.at(use.type).name;
  const std::string or_none = "    logical, intent(in) :: or_none\n", index = "    integer(c_int64_t) :: i, count\n";
  const auto counted = fmt::format("    count = 0\n    if ({}(it)) count = size(it, kind=c_int64_t)\n", has);
  out_ += begin("size", use, or_none + index, ", or_none") + counted +
          "    if (count == 0 .and. .not. or_none) call xdr_refuse(sizer, xdr_empty_list)\n"
          "    sizer%size_bytes = sizer%size_bytes + merge(4, 0, or_none) + 4 * count\n"
          "    do i = 1, count\n      call xdr_size(sizer, it(i))\n    end do\n";
  end();
  out_ += begin("put", use, or_none + index, ", or_none") + counted +
          "    if (or_none) call xdr_put(writer, count > 0)\n    do i = 1, count\n      call xdr_put(writer, it(i))\n"
          "      call xdr_put(writer, i < count)\n    end do\n";
  end();
  const auto before = freeing(use);
  const bool loops = before.find("do i = ") != std::string::npos;
  out_ +=
      begin("get", use,
            or_none + (loops ? "    integer(c_int64_t) :: count, i\n" : "    integer(c_int64_t) :: count\n") +
                "    integer :: failed\n" + fortran_line(4, fmt::format("type({}), {} :: more(:)", type, attribute)),
            ", or_none") +
      before + "    count = 0\n    if (or_none) then\n      if (.not. xdr_get_flag(reader)) then\n" +
      fortran_allocate(8, "it(0)") + "        return\n      end if\n    end if\n" + fortran_allocate(4, "it(1)") +
      "    if (.not. xdr_enter(reader)) return\n    do\n"
      "      if (count == size(it, kind=c_int64_t)) then\n        allocate (more(2 * count), stat=failed)\n"
      "        if (failed /= 0) then\n          call xdr_refuse(reader, xdr_no_memory)\n          exit\n        "
      "end if\n"
      "        more(:count) = it\n" +
      (use.is_pointer ? "        deallocate (it)\n        it => more\n" : "        call move_alloc(more, it)\n") +
      "      end if\n      count = count + 1\n      call xdr_get(reader, it(count))\n"
      "      if (.not. xdr_get_flag(reader)) exit\n    end do\n    call xdr_leave(reader)\n"
      "    if (count == size(it, kind=c_int64_t)) return\n" +
      fortran_allocate(4, "more(count)") + "    more = it(:count)\n" +
      (use.is_pointer ? "    deallocate (it)\n    it => more\n" : "    call move_alloc(more, it)\n");
  end();
}

}  // namespace xdr::idl

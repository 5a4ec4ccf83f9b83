// SPDX-License-Identifier: BSD-3-Clause
#include "xdr/idl/cpp_names.hpp"
#include "xdr/idl/graph.hpp"
#include "xdr/idl/languages.hpp"
#include "xdr/idl/names.hpp"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>
#include <vector>

namespace xdr::idl {
namespace {

using Kind = Type::Kind;
using Shape = Declaration::Shape;

const char *integer_for(const Number &number) {
  constexpr std::uint64_t kInt = std::numeric_limits<std::int32_t>::max();
  if (number.magnitude <= kInt + (number.negative ? 1 : 0)) return "std::int32_t";
  if (number.negative) return "std::int64_t";
  if (number.magnitude <= std::numeric_limits<std::uint32_t>::max()) return "std::uint32_t";
  return number.magnitude <= std::numeric_limits<std::int64_t>::max() ? "std::int64_t" : "std::uint64_t";
}

class CppWriter {
 public:
  CppWriter(const Interface &interface, const Options &options) : graph_(interface), options_(options) {}

  std::string write() {
    out_ += fmt::format("// Made by `nessie idl` from {}; changes will be lost.\n#pragma once\n\n", options_.file);
    out_ +=
        "#include <xdr/codec.hpp>\n\n#include <boost/container/vector.hpp>\n\n#include <array>\n#include <cstddef>\n"
        "#include <cstdint>\n#include <optional>\n#include <string>\n#include <utility>\n#include <variant>\n"
        "#include <vector>\n\n";
    out_ += fmt::format("namespace {} {{\n", options_.name_space);
    for (const auto *definition : graph_.declared_first())
      out_ += fmt::format("struct {};\n", cpp_name(type_name_of(*definition)));
    for (const auto *definition : graph_.in_order()) std::visit([this](const auto &it) { write(it); }, *definition);
    out_ += fmt::format("\n}}  // namespace {}\n", options_.name_space);
    return std::move(out_);
  }

 private:
  // --- types -----------------------------------------------------------------------------------------------------------
  /// `hidden`: names of members, which a type of the same name could not be told from.
  std::string plain_type(const Type &type, const std::set<std::string> &hidden) const {
    if (type.kind == Kind::kVoid) return "std::monostate";
    return cpp_type(type, hidden.contains(type.name) ? options_.name_space : "");
  }
  std::string type_of(const Declaration &declaration, const std::set<std::string> &hidden = {}) {
    auto element = plain_type(declaration.type, hidden);
    switch (declaration.shape) {
      case Shape::kPlain: return element;
      case Shape::kFixed: return fmt::format("std::array<{}, {}>", element, declaration.size->number.magnitude);
      case Shape::kOptional:
        return fmt::format("{}<{}>", graph_.is_boxed(declaration) ? "::xdr::Box" : "std::optional", element);
      case Shape::kVariable: break;
    }
    // std::vector<bool> has no array.
    auto array = declaration.type.kind == Kind::kString ? element
                 : graph_.behind(declaration.type).kind == Kind::kBool
                     ? fmt::format("::boost::container::vector<{}>", element)
                     : fmt::format("std::vector<{}>", element);
    if (!declaration.size) return array;
    return fmt::format("::xdr::Bounded<{}, {}>", array, declaration.size->number.magnitude);
  }

  // --- definitions -------------------------------------------------------------------------------------------------------
  void write(const Constant &it) {
    out_ += fmt::format("\ninline constexpr {} {} = {};\n", integer_for(it.value.number), cpp_name(it.name),
                        literal(it.value.number));
  }
  void write(const Enum &it) {
    const auto name = cpp_name(it.name);
    const auto &scope = scope_of(it);
    out_ += fmt::format("\nenum class {} : std::int32_t {{\n", name);
    for (const auto &each : it.enumerators) out_ += fmt::format("  {} = {},\n", scope[each.name], literal(each.number));
    out_ += fmt::format(
        "}};\n/// Others are neither encoded nor decoded.\nconstexpr bool xdr_has_name({} value) {{\n"
        "  switch (value) {{\n",
        name);
    std::set<std::string> seen;  // of two names for one value, one will do
    for (const auto &each : it.enumerators)
      if (seen.insert(literal(each.number)).second) out_ += fmt::format("    case {}::{}:\n", name, scope[each.name]);
    out_ += "      return true;\n  }\n  return false;\n}\n";
  }
  void write(const Typedef &it) {
    out_ += fmt::format("\nusing {} = {};\n", cpp_name(it.declaration.name), type_of(it.declaration));
  }
  void write(const Struct &it) {
    std::set<std::string> hidden;
    for (const auto &field : it.fields) hidden.insert(field.name);
    const CppScope scope(it);
    std::string fields;
    out_ += fmt::format("\nstruct {} {{\n", cpp_name(it.name));
    for (const auto &field : it.fields) {
      out_ += fmt::format("  {} {}{{}};\n", type_of(field, hidden), scope[field.name]);
      fields += fmt::format("{}{}", fields.empty() ? "" : ", ", scope[field.name]);
    }
    if (graph_.is_chain(it))
      write_chain(it);
    else
      out_ += fmt::format("\n  template <class xdr_Archive> void xdr([[maybe_unused]] xdr_Archive &archive) {{{}}}\n",
                          fields.empty() ? "" : fmt::format(" archive({}); ", fields));
    end_type(it.name);
  }
  void end_type(const std::string &name) {
    // Boxes cannot be copied or compared, nor can what holds them.
    if (!graph_.holds_boxes(name))
      out_ += fmt::format("  bool operator==(const {} &) const = default;\n", cpp_name(name));
    out_ += "};\n";
  }
  void write_chain(const Struct &it) {
    const CppScope scope(it);
    std::string fields;
    for (const auto &field : it.fields)
      if (&field != &it.fields.back())
        fields += fmt::format("{}node.{}", fields.empty() ? "" : ", ", scope[field.name]);
    const auto name = cpp_name(it.name);
    out_ += fmt::format(
        "\n  template <class xdr_Archive> void xdr(xdr_Archive &archive) {{\n"
        "    ::xdr::chain(archive, *this, []([[maybe_unused]] xdr_Archive &each, [[maybe_unused]] {0} &node) "
        "{{{1}}});\n  "
        "}}\n"
        "  friend ::xdr::Box<{0}> &xdr_next({0} &node) {{ return node.{2}; }}\n",
        name, fields.empty() ? "" : fmt::format(" each({}); ", fields), scope[it.fields.back().name]);
  }

  // --- unions ------------------------------------------------------------------------------------------------------------
  /// Made once, for all the cases that name its enumerators.
  const CppScope &scope_of(const Enum &it) { return enums_.try_emplace(it.name, it).first->second; }
  /// A value of what the union switches on.
  std::string case_label(const Union &it, const Number &number) {
    const auto &type = graph_.behind(it.discriminant.type);
    if (type.kind == Kind::kNamed) {
      const auto &choice = std::get<Enum>(graph_.at(type.name));
      const auto found =
          std::ranges::find_if(choice.enumerators, [&](const Enumerator &each) { return each.number == number; });
      return fmt::format("::{}::{}::{}", options_.name_space, cpp_name(choice.name), scope_of(choice)[found->name]);
    }
    if (type.kind == Kind::kBool) return number.magnitude == 0 ? "false" : "true";
    return literal(number) + (type.kind == Kind::kUnsigned ? "u" : "");
  }
  /// One line for each case: what `line` makes of the arm's number.
  template <class Line>
  void write_switch(const Union &it, const std::string &on, Line line, std::string_view otherwise) {
    const bool on_bool = graph_.behind(it.discriminant.type).kind == Kind::kBool;
    out_ += fmt::format("    switch ({}) {{\n", on_bool ? fmt::format("static_cast<int>({})", on) : on);
    bool has_default = false;
    for (std::size_t i = 0; i < it.arms.size(); ++i) {
      for (const auto &value : it.arms[i].cases)
        out_ += fmt::format("      case {}:\n", on_bool ? literal(value.number) : case_label(it, value.number));
      if (it.arms[i].cases.empty()) out_ += "      default:\n";
      has_default = has_default || it.arms[i].cases.empty();
      out_ += fmt::format("        {}\n", line(i));
    }
    if (!has_default) out_ += fmt::format("      default:\n        {}\n", otherwise);
    out_ += "    }\n";
  }
  void write(const Union &it) {
    std::set<std::string> hidden{it.discriminant.name};
    for (const auto &arm : it.arms) hidden.insert(arm.declaration.name);
    const auto choice = type_of(it.discriminant, hidden);
    const CppScope scope(it);
    const auto &on = scope[it.discriminant.name];
    out_ += fmt::format("\nstruct {} {{\n  {} {} = {};\n  std::variant<", cpp_name(it.name), choice, on,
                        case_label(it, it.arms.front().cases.front().number));
    for (std::size_t i = 0; i < it.arms.size(); ++i)
      out_ += fmt::format("{}{}", i == 0 ? "" : ", ", type_of(it.arms[i].declaration, hidden));
    out_ += "> arm;  ///< the one that belongs to it\n\n";
    out_ += fmt::format("  /// Sets both; the arm is empty.\n  void select({} xdr_choice) {{\n    {} = xdr_choice;\n",
                        choice, on);
    write_switch(
        it, on, [](std::size_t i) { return fmt::format("arm.emplace<{}>();\n        return;", i); }, "return;");
    out_ += "  }\n";
    for (std::size_t i = 0; i < it.arms.size(); ++i) write_access(it.arms[i], i, hidden, scope);
    out_ += fmt::format("\n  template <class xdr_Archive> void xdr(xdr_Archive &archive) {{\n    archive({});\n", on);
    write_switch(
        it, on, [](std::size_t i) { return fmt::format("return ::xdr::arm<{}>(archive, arm);", i); },
        "return archive.fail(\"a union has no such arm\");");
    out_ += "  }\n";
    end_type(it.name);
  }
  void write_access(const Arm &arm, std::size_t number, const std::set<std::string> &hidden, const CppScope &scope) {
    if (arm.declaration.type.kind == Kind::kVoid) return;
    out_ += fmt::format(
        "  /// Null if it is not this one.\n"
        "  {0} *{1}() {{ return std::get_if<{2}>(&arm); }}\n"
        "  const {0} *{1}() const {{ return std::get_if<{2}>(&arm); }}\n",
        type_of(arm.declaration, hidden), scope[arm.declaration.name], number);
  }

  // --- programs ------------------------------------------------------------------------------------------------------------
  void write(const Program &it) {
    out_ += fmt::format("\nnamespace {} {{\ninline constexpr std::uint32_t kProgram = {};\n", cpp_name(it.name),
                        literal(it.number.number));
    for (const auto &version : it.versions) {
      out_ += fmt::format("namespace {} {{\ninline constexpr std::uint32_t kVersion = {};\n", cpp_name(version.name),
                          literal(version.number.number));
      const CppScope scope(version);
      for (const auto &procedure : version.procedures)
        out_ += fmt::format("inline constexpr std::uint32_t {} = {};\n", scope[procedure.name],
                            literal(procedure.number.number));
      out_ += fmt::format("}}  // namespace {}\n", cpp_name(version.name));
    }
    out_ += fmt::format("}}  // namespace {}\n", cpp_name(it.name));
  }

  const TypeGraph graph_;
  const Options &options_;
  std::map<std::string, CppScope> enums_;  ///< see scope_of()
  std::string out_;
};

}  // namespace

std::optional<Fault> check_cpp(const Interface &interface) {
  if (auto fault = find_alike(names_of(interface, false), cpp_name, "C++")) return fault;
  for (const auto &definition : interface.definitions) {
    const auto *it = std::get_if<Program>(&definition);
    PlacedNames versions;
    if (it != nullptr)
      for (const auto &version : it->versions) versions.emplace_back(version.name, version.at);
    if (auto fault = find_alike(versions, cpp_name, "C++")) return fault;
  }
  return std::nullopt;
}

std::string make_cpp(const Interface &interface, const Options &options) {
  return CppWriter(interface, options).write();
}

}  // namespace xdr::idl

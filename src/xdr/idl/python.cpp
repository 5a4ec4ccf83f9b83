// SPDX-License-Identifier: BSD-3-Clause
#include "xdr/idl/languages.hpp"
#include "xdr/idl/python_rpc.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <variant>
#include <vector>

namespace xdr::idl {
namespace {

using Kind = Type::Kind;
using Shape = Declaration::Shape;

class PythonWriter {
 public:
  PythonWriter(const Interface &interface, const Options &options)
      : interface_(interface), module_(interface), graph_(module_.graph), options_(options) {}

  std::string write() {
    const auto rpc = make_python_rpc(interface_, module_, aliases_);
    out_ += fmt::format(
        "# Made by `nessie idl` from {0}; changes will be lost.\n\"\"\"What {0} says.\"\"\"\n"
        "from __future__ import annotations\n\nimport enum as _enum\n{1}\n{2}"
        "from nessie import xdr as _xdr\n",
        options_.file,
        rpc.empty() ? "" : "from abc import abstractmethod as _abstractmethod\nfrom typing import Unpack as _Unpack\n",
        rpc.empty() ? "" : "from nessie import nssi as _nssi, stub as _stub\n");
    for (const auto *definition : graph_.in_order()) {
      std::visit([this](const auto &it) { write(it); }, *definition);
      defined_.insert(type_name_of(*definition));
    }
    return std::move(out_) + rpc + aliases_.statements();
  }

 private:
  // --- codecs ----------------------------------------------------------------------------------------------------------
  /// A class that stands further below is looked up when it is needed.
  std::string codec_of(const Type &type) const {
    if (type.kind == Kind::kVoid) return "_xdr.VOID";
    auto codec = python_codec(module_, type);
    const bool is_below = type.kind == Kind::kNamed && !defined_.contains(type.name);
    return is_below ? fmt::format("_xdr.Ref(lambda: {})", codec) : codec;
  }
  std::string codec_of(const Declaration &declaration) const {
    auto element = codec_of(declaration.type);
    const auto size = declaration.size ? python_number(declaration.size->number) : std::string();
    const auto kind = declaration.type.kind;
    switch (declaration.shape) {
      case Shape::kPlain: return element;
      case Shape::kOptional: return fmt::format("_xdr.Optional({})", element);
      case Shape::kFixed:
        return kind == Kind::kOpaque ? fmt::format("_xdr.FixedOpaque({})", size)
                                     : fmt::format("_xdr.Array({}, {})", element, size);
      case Shape::kVariable: break;
    }
    if (kind == Kind::kString) return fmt::format("_xdr.String({})", size);
    if (kind == Kind::kOpaque) return fmt::format("_xdr.Opaque({})", size);
    return fmt::format("_xdr.Vector({}{}{})", element, size.empty() ? "" : ", ", size);
  }

  /// Two empty lines around a class, one between others.
  void begin(bool is_class) {
    out_ += is_class || after_class_ ? "\n\n" : "\n";
    after_class_ = is_class;
  }

  // --- definitions -------------------------------------------------------------------------------------------------------
  void write(const Constant &it) {
    begin(false);
    out_ += fmt::format("{} = {}\n", module_.name(it.name), python_number(it.value.number));
  }
  void write(const Enum &it) {
    begin(true);
    out_ += fmt::format("@_xdr.named\nclass {}(_enum.IntEnum):\n    \"\"\"enum {}\"\"\"\n\n", module_.name(it.name),
                        it.name);
    const auto &names = enumerators_of(it);
    for (const auto &each : it.enumerators)
      out_ += fmt::format("    {} = {}\n", names.at(each.name), python_number(each.number));
  }
  void write(const Typedef &it) {
    begin(false);
    out_ += fmt::format("{} = {}\n", module_.name(it.declaration.name), codec_of(it.declaration));
  }
  void write(const Struct &it) {
    begin(true);
    out_ += fmt::format("@_xdr.{}(", graph_.is_chain(it) ? "chain" : "struct");
    for (const auto &field : it.fields) out_ += fmt::format("\n    {},", codec_of(field));
    out_ += fmt::format("{})\nclass {}(_xdr.Struct):\n    \"\"\"struct {}\"\"\"\n", it.fields.empty() ? "" : "\n",
                        module_.name(it.name), it.name);
    const auto members = members_named(it);
    for (const auto &field : it.fields) write_annotation(members, field, "", " = _xdr.DEFAULT");
  }
  /// How the fields, or what it switches on and the arms, are called.
  static PythonNames members_named(const Definition &definition) {
    std::vector<std::string> names;
    for (const auto *member : members_of(definition))
      if (member->type.kind != Kind::kVoid) names.push_back(member->name);
    return {PythonNames::Scope::kMembers, names};
  }
  void write_annotation(const PythonNames &members, const Declaration &declaration, const char *or_none,
                        const char *value) {
    const bool is_first = out_.ends_with("\"\"\"\n");
    const auto type = aliases_.beside(members.taken(), python_annotation(module_, declaration));
    out_ += fmt::format("{}    {}: {}{}{}\n", is_first ? "\n" : "", members.at(declaration.name), type,
                        type.ends_with("None") ? "" : or_none, value);
  }

  // --- unions ------------------------------------------------------------------------------------------------------------
  const PythonNames &enumerators_of(const Enum &it) {
    if (const auto known = enumerators_.find(it.name); known != enumerators_.end()) return known->second;
    std::vector<std::string> names;
    for (const auto &each : it.enumerators) names.push_back(each.name);
    return enumerators_.try_emplace(it.name, PythonNames::Scope::kEnum, names).first->second;
  }
  std::string case_of(const Union &it, const Number &number) {
    const auto &type = graph_.behind(it.discriminant.type);
    if (type.kind == Kind::kBool) return number.magnitude == 0 ? "False" : "True";
    if (type.kind != Kind::kNamed) return python_number(number);
    const auto &choice = std::get<Enum>(graph_.at(type.name));
    const auto found =
        std::ranges::find_if(choice.enumerators, [&](const Enumerator &each) { return each.number == number; });
    return fmt::format("{}.{}", module_.name(choice.name), enumerators_of(choice).at(found->name));
  }
  std::string cases_of(const Union &it, const Arm &arm) {
    std::string cases;
    for (const auto &each : arm.cases) cases += (cases.empty() ? "" : ", ") + case_of(it, each.number);
    return cases;
  }
  void write(const Union &it) {
    begin(true);
    const auto members = members_named(it);
    out_ += fmt::format("class {}(\n    _xdr.Union,\n    on=(\"{}\", {}),\n    arms=[\n", module_.name(it.name),
                        members.at(it.discriminant.name), codec_of(it.discriminant));
    for (const auto &arm : it.arms) {
      const bool is_void = arm.declaration.type.kind == Kind::kVoid;
      const auto name = is_void ? "None" : fmt::format("\"{}\"", members.at(arm.declaration.name));
      out_ += fmt::format("        _xdr.Arm({}, {}, [{}]),\n", name, codec_of(arm.declaration), cases_of(it, arm));
    }
    out_ += fmt::format("    ],\n):\n    \"\"\"union {}\"\"\"\n", it.name);
    write_annotation(members, it.discriminant, "", "");
    for (const auto &arm : it.arms)
      if (arm.declaration.type.kind != Kind::kVoid) write_annotation(members, arm.declaration, " | None", "");
  }

  void write(const Program &) {}  // all of them come last

  const Interface &interface_;
  PythonModule module_;
  const TypeGraph &graph_;  ///< the module's
  const Options &options_;
  std::set<std::string> defined_;
  std::map<std::string, PythonNames> enumerators_;
  PythonAliases aliases_;
  bool after_class_ = false;
  std::string out_;
};

}  // namespace

std::string make_python(const Interface &interface, const Options &options) {
  return PythonWriter(interface, options).write();
}

}  // namespace xdr::idl

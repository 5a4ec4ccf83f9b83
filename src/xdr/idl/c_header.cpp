// SPDX-License-Identifier: BSD-3-Clause
// The header in C: rpcgen's names and layouts, so that code that was written for its header compiles with this one.
#include "xdr/idl/c_names.hpp"
#include "xdr/idl/languages.hpp"
#include "xdr/idl/names.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>

namespace xdr::idl {
namespace {

using Kind = Type::Kind;
using Shape = Declaration::Shape;

/// rpcgen's, so that whoever includes both headers gets one of them.
std::string guard_of(const std::string &stem) { return c_macro("_" + stem + "_H_RPCGEN"); }

class HeaderWriter {
 public:
  HeaderWriter(const Interface &interface, const Options &options)
      : interface_(interface), graph_(interface), numbers_(interface), options_(options) {}

  std::string write() {
    const auto guard = guard_of(options_.stem);
    out_ += fmt::format("/* Made by `nessie idl` from {}; changes will be lost. */\n", options_.file);
    out_ += fmt::format("#ifndef {0}\n#define {0}\n\n#include <rpc/rpc.h>\n\n", guard);
    out_ += "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n";
    write_declared_first();
    write_definitions();
    write_functions();
    out_ += fmt::format("\n#ifdef __cplusplus\n}}\n#endif\n\n#endif /* {} */\n", guard);
    return std::move(out_);
  }

 private:
  void write_declared_first() {
    for (const auto *definition : graph_.declared_first()) {
      const auto name = c_name(type_name_of(*definition));
      out_ += fmt::format("typedef struct {0} {0};\n", name);
      declared_.insert(definition);
    }
  }
  void write_definitions() {
    auto passage = interface_.passages.begin();
    const auto *first = interface_.definitions.data();
    for (const auto *definition : graph_.in_order()) {
      const auto number = static_cast<std::size_t>(definition - first);
      for (; passage != interface_.passages.end() && passage->before <= number; ++passage) out_ += passage->text;
      std::visit([this](const auto &it) { write(it); }, *definition);
    }
    for (; passage != interface_.passages.end(); ++passage) out_ += passage->text;
  }
  void write_functions() {
    out_ += "\n";
    for (const auto &definition : interface_.definitions) {
      const auto name = c_name(type_name_of(definition));
      if (name.empty()) continue;
      out_ += fmt::format("extern bool_t xdr_{0}(XDR *, {0}{1});\n", name, is_c_array(graph_, definition) ? "" : " *");
    }
  }

  // --- values ------------------------------------------------------------------------------------------------------------
  /// As it stands in the file where that means the same in C: a number's base decides on its type.
  static std::string value(const Value &value) {
    if (value.name == "TRUE" || value.name == "FALSE") return value.name;
    if (!value.name.empty()) return c_name(value.name);
    const auto &number = value.number;
    if (number.negative) return fmt::format("({})", literal(number));
    return value.text.starts_with('0') ? value.text : literal(number);
  }
  void define(const std::string &name, const Value &it) {
    out_ += fmt::format("#define {} {}\n", c_name(name), value(it));
  }

  // --- definitions -------------------------------------------------------------------------------------------------------
  /// `indent`: of its lines.
  static std::string declared(const Declaration &it, const std::string &indent) {
    const auto name = c_name(it.name);
    const auto type = c_type(it.type);
    switch (it.shape) {
      case Shape::kPlain: return fmt::format("{} {}", type, name);
      case Shape::kFixed: return fmt::format("{} {}[{}]", type, name, it.size->number.magnitude);
      case Shape::kOptional: return fmt::format("{} *{}", type, name);
      case Shape::kVariable: break;
    }
    if (it.type.kind == Kind::kString) return fmt::format("char *{}", name);
    return fmt::format("struct {{\n{0}  u_int {1}_len;\n{0}  {2} *{1}_val;\n{0}}} {3}", indent, it.name, type, name);
  }
  void write(const Constant &it) {
    if (!numbers_.is_enumerator(it)) return define(it.name, it.value);
    const auto &number = it.value.number;
    const bool is_int = number.magnitude <= std::uint64_t{std::numeric_limits<std::int32_t>::max()};
    out_ += fmt::format("{}enum {{ {} = {} }};\n", is_int ? "" : "__extension__ ", c_name(it.name), value(it.value));
  }
  void write(const Enum &it) {
    out_ += fmt::format("\nenum {} {{\n", c_name(it.name));
    for (const auto &each : it.enumerators)
      out_ += fmt::format("  {} = {}{}\n", c_name(each.name), literal(each.number),
                          &each == &it.enumerators.back() ? "" : ",");
    out_ += fmt::format("}};\ntypedef enum {0} {0};\n", c_name(it.name));
  }
  void write(const Typedef &it) { out_ += fmt::format("\ntypedef {};\n", declared(it.declaration, "")); }
  void write(const Struct &it) {
    out_ += fmt::format("\nstruct {} {{\n", c_name(it.name));
    for (const auto &field : it.fields) out_ += fmt::format("  {};\n", declared(field, "  "));
    if (it.fields.empty()) out_ += "  char nothing; /* C has no struct without fields */\n";
    end_struct(it, it.name);
  }
  void write(const Union &it) {
    out_ += fmt::format("\nstruct {} {{\n  {};\n", c_name(it.name), declared(it.discriminant, "  "));
    std::string arms;
    for (const auto &arm : it.arms)
      if (arm.declaration.type.kind != Kind::kVoid) arms += fmt::format("    {};\n", declared(arm.declaration, "    "));
    if (!arms.empty()) out_ += fmt::format("  union {{\n{}  }} {}_u;\n", arms, it.name);
    end_struct(it, it.name);
  }
  template <class T> void end_struct(const T &it, const std::string &name) {
    out_ += "};\n";
    const bool is_declared =
        std::ranges::any_of(declared_, [&](const Definition *each) { return std::get_if<T>(each) == &it; });
    if (!is_declared) out_ += fmt::format("typedef struct {0} {0};\n", c_name(name));
  }
  /// A name is there once, even if several versions have it: as rpcgen does it.
  void write(const Program &it) {
    out_ += "\n";
    define_once(it.name, it.number);
    for (const auto &version : it.versions) {
      define_once(version.name, version.number);
      for (const auto &procedure : version.procedures) define_once(procedure.name, procedure.number);
    }
  }
  void define_once(const std::string &name, const Value &number) {
    if (numbers_.is_macro(name) && defined_.insert(name).second) define(name, number);
  }

  const Interface &interface_;
  const TypeGraph graph_;
  const CNumberNames numbers_;
  const Options &options_;
  std::set<const Definition *> declared_;
  std::set<std::string> defined_;
  std::string out_;
};

/// That two fields or arms would be one.
std::optional<Fault> find_alike_members(const Interface &interface) {
  for (const auto &definition : interface.definitions) {
    PlacedNames names;
    for (const auto *member : members_of(definition))
      if (member->type.kind != Kind::kVoid) names.emplace_back(member->name, member->at);
    if (auto fault = find_alike(names, c_name, "C")) return fault;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Fault> check_c(const Interface &interface) {
  if (auto fault = CNumberNames(interface).find_fault(interface)) return fault;
  if (auto fault = find_alike(names_of(interface, true), c_name, "C")) return fault;
  return find_alike_members(interface);
}

std::string make_c_header(const Interface &interface, const Options &options) {
  return HeaderWriter(interface, options).write();
}

}  // namespace xdr::idl

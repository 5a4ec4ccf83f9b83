// SPDX-License-Identifier: BSD-3-Clause
// The codec in C. Every type T has a function nessie_code_T(), which knows how deep it is, and xdr_T() around it; what
// is an element of an array, or optional, has a nessie_type_T, which <xdr/xdr.h> goes through arrays with.
#include "xdr/idl/c_names.hpp"
#include "xdr/idl/languages.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

namespace xdr::idl {
namespace {

using Kind = Type::Kind;
using Shape = Declaration::Shape;

class CodecWriter {
 public:
  CodecWriter(const Interface &interface, const Options &options)
      : interface_(interface), graph_(interface), options_(options) {}

  std::string write() {
    for (const auto &definition : interface_.definitions)
      if (!type_name_of(definition).empty()) write_type(definition);
    return fmt::format("/* Made by `nessie idl` from {}; changes will be lost. */\n#include \"{}.h\"\n{}\n",
                       options_.file, options_.stem, CNumberNames(interface_).undefined()) +
           fmt::format("#include <stddef.h>\n#include <xdr/xdr.h>\n\n{}{}{}{}", prototypes_, number_coders_, elements_,
                       out_);
  }

 private:
  static constexpr std::string_view kParameters = "(XDR *xdrs, void *objp_, unsigned depth_)";

  void write_type(const Definition &definition) {
    const auto name = c_name(type_name_of(definition));
    prototypes_ += fmt::format("static bool_t nessie_code_{}{};\n", name, kParameters);
    std::visit(
        [&, this](const auto &it) {
          if constexpr (requires { write_body(it); }) write_body(it);
        },
        definition);
    out_ += fmt::format("\nbool_t xdr_{0}(XDR *xdrs, {0} {1}objp)\n{{\n  return nessie_code_{0}(xdrs, objp, 0);\n}}\n",
                        name, is_c_array(graph_, definition) ? "" : "*");
  }
  void begin(const std::string &type, std::string_view prefix = "code") {
    out_ +=
        fmt::format("\nstatic bool_t nessie_{0}_{1}{2}\n{{\n  {1} *objp = objp_;\n", prefix, c_name(type), kParameters);
  }

  // --- calls -------------------------------------------------------------------------------------------------------------
  static std::string most_of(const Declaration &it) {
    return it.size ? fmt::format("{}u", it.size->number.magnitude) : "0xffffffffu";
  }
  /// `&at` as a call's argument; what points there already needs no &.
  static std::string address(const std::string &at) { return at == "(*objp)" ? "objp" : "&" + at; }

  /// Codes what lies at `at`. `members`: what comes before the two members of an array<>.
  std::string call(const Declaration &it, const std::string &at, const std::string &members) {
    switch (it.shape) {
      case Shape::kPlain: return plain_call(it.type, address(at));
      case Shape::kFixed: return fixed_call(it, at);
      case Shape::kOptional:
        return fmt::format("nessie_xdr_pointer(xdrs, {}, &{}, depth_)", address(at), element(it.type));
      case Shape::kVariable: break;
    }
    if (it.type.kind == Kind::kString) return fmt::format("nessie_xdr_string(xdrs, {}, {})", address(at), most_of(it));
    const auto array = fmt::format("xdrs, &{0}{1}_val, &{0}{1}_len, {2}", members, it.name, most_of(it));
    if (it.type.kind == Kind::kOpaque) return fmt::format("nessie_xdr_bytes({})", array);
    if (const auto block = block_of(it.type); !block.empty())
      return fmt::format("nessie_xdr_{}_array({})", block, array);
    return fmt::format("nessie_xdr_array({}, &{}, depth_)", array, element(it.type));
  }
  std::string plain_call(const Type &type, const std::string &address) {
    const auto *number = c_number(type);
    if (number != nullptr) return fmt::format("{}(xdrs, {})", number->coder, address);
    return fmt::format("nessie_code_{}(xdrs, {}, depth_)", c_name(type.name), address);
  }
  std::string fixed_call(const Declaration &it, const std::string &at) {
    const auto array = fmt::format("xdrs, {}, {}u", at, it.size->number.magnitude);
    if (it.type.kind == Kind::kOpaque) return fmt::format("nessie_xdr_opaque({})", array);
    if (const auto block = block_of(it.type); !block.empty()) return fmt::format("nessie_xdr_{}s({})", block, array);
    return fmt::format("nessie_xdr_vector({}, &{}, depth_)", array, element(it.type));
  }
  std::string field_call(const Declaration &it, const std::string &in) {
    return call(it, in + c_name(it.name), in + c_name(it.name) + ".");
  }
  /// "word", "double_word"; empty: no array of numbers that are coded block by block.
  std::string_view block_of(const Type &type) const {
    const auto *number = c_number(graph_.behind(type));
    if (number == nullptr || number->block_bytes == 0) return {};
    return number->block_bytes == 4 ? "word" : "double_word";
  }

  // --- elements ------------------------------------------------------------------------------------------------------------
  /// The name of a nessie_type_T, which is made where it is missing. The shortest value counts 4 bytes even where it
  /// has none: as in C++.
  std::string element(const Type &type) {
    const auto name = c_type(type);
    auto descriptor = "nessie_type_" + name;
    if (!made_.insert(name).second) return descriptor;
    if (type.kind != Kind::kNamed && !graph_.contains(name)) write_number_coder(*c_number(type));
    elements_ += fmt::format("static const struct nessie_xdr_type {} = {{sizeof({}), {}u, nessie_code_{}}};\n",
                             descriptor, name, std::max(least_bytes(type), std::uint64_t{4}), name);
    return descriptor;
  }
  std::uint64_t least_bytes(const Type &type) const {
    Declaration plain;
    plain.type = type;
    return graph_.least_bytes(plain);
  }
  void write_number_coder(const CNumber &number) {
    number_coders_ +=
        fmt::format("\nstatic bool_t nessie_code_{}{}\n{{\n  (void)depth_;\n  return {}(xdrs, objp_);\n}}\n",
                    number.type, kParameters, number.coder);
  }

  // --- types -----------------------------------------------------------------------------------------------------------------
  void write_body(const Enum &it) {
    begin(it.name);
    out_ +=
        "  enum_t value_ = xdrs->x_op == XDR_ENCODE ? (enum_t)*objp : 0;\n  (void)depth_;\n"
        "  if (!xdr_enum(xdrs, &value_)) return FALSE;\n  if (xdrs->x_op != XDR_DECODE) return TRUE;\n"
        "  switch (value_) {\n";
    std::set<std::string> seen;  // of two names for one value, one will do
    for (const auto &each : it.enumerators)
      if (seen.insert(literal(each.number)).second) out_ += fmt::format("    case {}:\n", c_name(each.name));
    out_ += fmt::format("      *objp = ({})value_;\n      return TRUE;\n    default:\n      return FALSE;\n  }}\n}}\n",
                        c_name(it.name));
  }
  void write_body(const Typedef &it) {
    begin(it.declaration.name);
    const auto made = call(it.declaration, "(*objp)", "objp->");
    if (made.find("depth_") == std::string::npos) out_ += "  (void)depth_;\n";
    out_ += fmt::format("  return {};\n}}\n", made);
  }
  void write_body(const Struct &it) {
    if (graph_.is_chain(it)) return write_chain(it);
    begin(it.name);
    if (it.fields.empty()) out_ += "  (void)objp;\n";
    out_ += "  return nessie_xdr_enter(xdrs, &depth_)";
    for (const auto &field : it.fields) out_ += fmt::format("\n      && {}", field_call(field, "objp->"));
    out_ += ";\n}\n";
  }
  void write_chain(const Struct &it) {
    const auto name = c_name(it.name);
    begin(it.name, "link");
    if (it.fields.size() == 1) out_ += "  (void)xdrs;\n  (void)objp;\n";
    std::string fields;
    for (const auto &field : it.fields)
      if (&field != &it.fields.back())
        fields += fmt::format("{}{}", fields.empty() ? "" : "\n      && ", field_call(field, "objp->"));
    if (fields.find("depth_") == std::string::npos) out_ += "  (void)depth_;\n";
    out_ += fmt::format("  return {};\n}}\n", fields.empty() ? "TRUE" : fields);
    out_ += fmt::format(
        "\nstatic bool_t nessie_code_{0}{1}\n{{\n"
        "  static const struct nessie_xdr_chain chain_ = {{sizeof({0}), offsetof({0}, {2}), nessie_link_{0}}};\n"
        "  return nessie_xdr_enter(xdrs, &depth_) && nessie_xdr_links(xdrs, objp_, &chain_, depth_);\n}}\n",
        name, kParameters, c_name(it.fields.back().name));
  }

  // --- unions ------------------------------------------------------------------------------------------------------------------
  std::string label(const Type &type, const Number &number) const {
    if (type.kind == Kind::kNamed) {
      const auto &enumerators = std::get<Enum>(graph_.at(type.name)).enumerators;
      const auto is_it = [&](const Enumerator &each) { return each.number == number; };
      return c_name(std::ranges::find_if(enumerators, is_it)->name);
    }
    if (type.kind == Kind::kBool) return number.magnitude == 0 ? "FALSE" : "TRUE";
    return literal(number) + (type.kind == Kind::kUnsigned ? "u" : "");
  }
  void write_body(const Union &it) {
    const auto &type = graph_.behind(it.discriminant.type);
    const auto in = fmt::format("objp->{}_u.", it.name);
    begin(it.name);
    out_ += fmt::format("  if (!nessie_xdr_enter(xdrs, &depth_) || !{}) return FALSE;\n",
                        field_call(it.discriminant, "objp->"));
    out_ += fmt::format("  switch (objp->{}) {{\n", c_name(it.discriminant.name));
    for (const auto &arm : it.arms) {
      for (const auto &each : arm.cases) out_ += fmt::format("    case {}:\n", label(type, each.number));
      if (arm.cases.empty()) out_ += "    default:\n";
      const bool is_void = arm.declaration.type.kind == Kind::kVoid;
      out_ += fmt::format("      return {};\n", is_void ? "TRUE" : field_call(arm.declaration, in));
    }
    if (!it.arms.back().cases.empty())
      out_ += "    default: /* such a value holds nothing */\n      return xdrs->x_op == XDR_FREE;\n";
    out_ += "  }\n}\n";
  }

  const Interface &interface_;
  const TypeGraph graph_;
  const Options &options_;
  std::set<std::string> made_;  ///< the nessie_type_T
  std::string prototypes_, number_coders_, elements_, out_;
};

}  // namespace

std::string make_c_codec(const Interface &interface, const Options &options) {
  return CodecWriter(interface, options).write();
}

}  // namespace xdr::idl

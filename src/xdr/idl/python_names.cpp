// SPDX-License-Identifier: BSD-3-Clause
#include "xdr/idl/python_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <variant>

namespace xdr::idl {
namespace {

using Kind = Type::Kind;
using Shape = Declaration::Shape;

/// Keywords; names of Python's that annotations use; what structs and unions call their own.
constexpr std::array<std::string_view, 46> kWordsOfPython = {
    "False",    "None",   "True",   "and",    "as",     "assert",   "async",   "await", "break", "class",
    "continue", "def",    "del",    "elif",   "else",   "except",   "finally", "for",   "from",  "global",
    "if",       "import", "in",     "is",     "lambda", "nonlocal", "not",     "or",    "pass",  "raise",
    "return",   "try",    "while",  "with",   "yield",  "bool",     "bytes",   "float", "int",   "list",
    "str",      "arm",    "decode", "encode", "select", "xdr"};

/// Of an enum.
constexpr std::array<std::string_view, 3> kOfEnums = {"mro", "name", "value"};

/// Of a client, a server, and the class of their version.
constexpr std::array<std::string_view, 9> kOfStubs = {"Client",  "Server",  "PROGRAM", "VERSION", "INTERFACE",
                                                      "runtime", "service", "kind_of", "add_to"};

bool is_one_of(const auto &names, const std::string &name) {
  return std::ranges::find(names, name) != names.end() || name.starts_with('_');
}

bool is_number(const Type &type) { return type.kind >= Kind::kInt && type.kind <= Kind::kDouble; }

}  // namespace

std::string python_name(const std::string &name) { return is_one_of(kWordsOfPython, name) ? name + "_" : name; }

std::string python_enumerator(const std::string &name) {
  return is_one_of(kOfEnums, name) ? name + "_" : python_name(name);
}

std::string python_procedure(const std::string &name) {
  return is_one_of(kOfStubs, name) ? name + "_" : python_name(name);
}

std::string python_number(const Number &number) {
  return fmt::format("{}{}", number.negative ? "-" : "", number.magnitude);
}

std::string python_annotation(const TypeGraph &graph, const Type &type) {
  switch (type.kind) {
    case Kind::kVoid: return "None";
    case Kind::kFloat:
    case Kind::kDouble: return "float";
    case Kind::kBool: return "bool";
    case Kind::kString: return "str";
    case Kind::kOpaque: return "bytes";
    case Kind::kNamed: break;
    default: return "int";
  }
  const auto *it = std::get_if<Typedef>(&graph.at(type.name));
  return it == nullptr ? python_name(type.name) : python_annotation(graph, it->declaration);
}

std::string python_annotation(const TypeGraph &graph, const Declaration &declaration) {
  auto element = python_annotation(graph, declaration.type);
  const auto kind = declaration.type.kind;
  if (declaration.shape == Shape::kOptional) return element + " | None";
  if (declaration.shape == Shape::kPlain || kind == Kind::kString || kind == Kind::kOpaque) return element;
  return is_number(graph.behind(declaration.type)) ? "_xdr.Numbers" : fmt::format("list[{}]", element);
}

std::string PythonAliases::beside(const std::set<std::string> &members, std::string_view annotation) {
  const auto is_of_name = [](char c) { return c == '_' || c == '.' || std::isalnum(static_cast<unsigned char>(c)); };
  std::string made;
  while (!annotation.empty()) {
    const auto end = std::ranges::find_if_not(annotation, is_of_name) - annotation.begin();
    const std::string name(annotation.substr(0, static_cast<std::size_t>(end)));
    if (members.contains(name)) used_.insert(name);
    made += members.contains(name) ? "_type_" + name : name;
    annotation.remove_prefix(name.size());
    const auto next = std::ranges::find_if(annotation, is_of_name) - annotation.begin();
    made += annotation.substr(0, static_cast<std::size_t>(next));
    annotation.remove_prefix(static_cast<std::size_t>(next));
  }
  return made;
}

std::string PythonAliases::statements() const {
  std::string made;
  for (const auto &name : used_) made += fmt::format("{0}_type_{1} = {1}\n", made.empty() ? "\n\n" : "", name);
  return made;
}

std::string python_codec(const Type &type) {
  switch (type.kind) {
    case Kind::kVoid: return "None";
    case Kind::kInt: return "_xdr.INT";
    case Kind::kUnsigned: return "_xdr.UNSIGNED";
    case Kind::kHyper: return "_xdr.HYPER";
    case Kind::kUnsignedHyper: return "_xdr.UNSIGNED_HYPER";
    case Kind::kFloat: return "_xdr.FLOAT";
    case Kind::kDouble: return "_xdr.DOUBLE";
    case Kind::kBool: return "_xdr.BOOL";
    case Kind::kString: return "_xdr.String()";
    case Kind::kOpaque: return "_xdr.Opaque()";
    case Kind::kNamed: break;
  }
  return python_name(type.name);
}

}  // namespace xdr::idl

// SPDX-License-Identifier: BSD-3-Clause
#include "xdr/idl/python_names.hpp"

#include "xdr/idl/names.hpp"

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

constexpr std::array<std::string_view, 35> kPythonKeywords = {
    "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
    "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
    "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
    "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"};

/// Names of Python's that annotations use; what structs and unions call their own.
constexpr std::array<std::string_view, 11> kOfPythonModules = {"bool", "bytes",  "float",  "int",    "list", "str",
                                                               "arm",  "decode", "encode", "select", "xdr"};

/// Of an enum.
constexpr std::array<std::string_view, 3> kOfPythonEnums = {"mro", "name", "value"};

/// Of a program: the number.
constexpr std::array<std::string_view, 1> kOfPythonPrograms = {"PROGRAM"};

/// Of a client, a server, and the class of their version.
constexpr std::array<std::string_view, 9> kOfPythonStubs = {"Client",  "Server",  "PROGRAM", "VERSION", "INTERFACE",
                                                            "runtime", "service", "kind_of", "add_to"};

/// What generated modules import, and would find themselves instead of.
constexpr std::array<std::string_view, 2> kPythonImports = {"nessie", "numpy"};

bool is_kept_by_python(PythonNames::Scope scope, const std::string &name) {
  using Scope = PythonNames::Scope;
  if (is_one_of(kPythonKeywords, name) || is_one_of(kOfPythonModules, name) || name.starts_with('_')) return true;
  return (scope == Scope::kEnum && is_one_of(kOfPythonEnums, name)) ||
         (scope == Scope::kProgram && is_one_of(kOfPythonPrograms, name)) ||
         (scope == Scope::kStubs && is_one_of(kOfPythonStubs, name));
}

/// Python's enums keep what begins and ends with a _, and its classes hide what begins with two.
bool is_hidden_by_python(PythonNames::Scope scope, const std::string &name) {
  using Scope = PythonNames::Scope;
  if (scope == Scope::kEnum) return name.starts_with('_');
  return scope != Scope::kModule && name.starts_with("__") && !(name + "_").ends_with("__");
}

std::vector<std::string> names_of_module(const Interface &interface) {
  std::vector<std::string> names;
  for (const auto &definition : interface.definitions) {
    if (const auto *constant = std::get_if<Constant>(&definition))
      names.push_back(constant->name);
    else if (const auto *program = std::get_if<Program>(&definition))
      names.push_back(program->name);
    else
      names.push_back(type_name_of(definition));
  }
  return names;
}

bool is_number(const Type &type) { return type.kind >= Kind::kInt && type.kind <= Kind::kDouble; }

}  // namespace

PythonNames::PythonNames(Scope scope, const std::vector<std::string> &names) {
  std::vector<std::string> others;
  for (const auto &name : names) {
    if (is_kept_by_python(scope, name))
      others.push_back(name);
    else if (taken_.insert(name).second)
      names_[name] = name;
  }
  for (const auto &name : others)
    if (!names_.contains(name)) names_[name] = claim(is_hidden_by_python(scope, name) ? "x" + name : name + "_");
}

std::string PythonNames::claim(std::string wanted) {
  while (!taken_.insert(wanted).second) wanted += "_";
  return wanted;
}

PythonModule::PythonModule(const Interface &interface)
    : graph(interface), names(PythonNames::Scope::kModule, names_of_module(interface)) {}

std::string python_module_name(const std::string &stem) {
  auto name = stem;
  for (auto &c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) == 0 ? name : "_" + name;
}

std::optional<std::string> python_module_fault(const std::string &name) {
  if (is_one_of(kPythonKeywords, name))
    return fmt::format("Python cannot import a module called '{}', a word of its own; call the file otherwise", name);
  if (is_one_of(kPythonImports, name))
    return fmt::format("{0}.py would hide the package '{0}', which it imports; call the file otherwise", name);
  return std::nullopt;
}

std::string python_number(const Number &number) {
  return fmt::format("{}{}", number.negative ? "-" : "", number.magnitude);
}

std::string python_annotation(const PythonModule &module, const Type &type) {
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
  const auto *it = std::get_if<Typedef>(&module.graph.at(type.name));
  return it == nullptr ? module.name(type.name) : python_annotation(module, it->declaration);
}

std::string python_annotation(const PythonModule &module, const Declaration &declaration) {
  auto element = python_annotation(module, declaration.type);
  const auto kind = declaration.type.kind;
  if (declaration.shape == Shape::kOptional) return element + " | None";
  if (declaration.shape == Shape::kPlain || kind == Kind::kString || kind == Kind::kOpaque) return element;
  return is_number(module.graph.behind(declaration.type)) ? "_xdr.Numbers" : fmt::format("list[{}]", element);
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

std::string python_codec(const PythonModule &module, const Type &type) {
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
  return module.name(type.name);
}

}  // namespace xdr::idl

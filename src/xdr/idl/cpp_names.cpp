// SPDX-License-Identifier: BSD-3-Clause
#include "xdr/idl/cpp_names.hpp"

#include "xdr/idl/c_names.hpp"
#include "xdr/idl/names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace xdr::idl {
namespace {

using Kind = Type::Kind;

constexpr std::array<std::string_view, 98> kWordsOfCpp = {
    "alignas",     "alignof",   "and",        "and_eq",    "asm",      "auto",         "bitand",
    "bitor",       "bool",      "break",      "case",      "catch",    "char",         "char8_t",
    "char16_t",    "char32_t",  "class",      "compl",     "concept",  "const",        "consteval",
    "constexpr",   "constinit", "const_cast", "continue",  "co_await", "co_return",    "co_yield",
    "decltype",    "default",   "delete",     "do",        "double",   "dynamic_cast", "else",
    "enum",        "explicit",  "export",     "extern",    "false",    "float",        "for",
    "friend",      "goto",      "if",         "inline",    "int",      "long",         "mutable",
    "namespace",   "new",       "noexcept",   "not",       "not_eq",   "nullptr",      "operator",
    "or",          "or_eq",     "private",    "protected", "public",   "register",     "reinterpret_cast",
    "requires",    "return",    "short",      "signed",    "sizeof",   "static",       "static_assert",
    "static_cast", "struct",    "switch",     "template",  "this",     "thread_local", "throw",
    "true",        "try",       "typedef",    "typeid",    "typename", "union",        "unsigned",
    "using",       "virtual",   "void",       "volatile",  "wchar_t",  "while",        "xor",
    "xor_eq",      "std",       "xdr",        "arm",       "select",   "archive",      "xdr_next"};

/// Macros of C's headers that hold what a system allows: C programs may define them, C++ would not compile then.
constexpr std::string_view kLimits[] = {"PATH_MAX", "NAME_MAX"};
/// Namespaces that generated code calls by these names.
constexpr std::string_view kNamespaces[] = {"nessie", "nssi"};

/// What the classes that are generated for a version call their own.
constexpr std::array<std::string_view, 9> kOfStubs = {"Client",  "Server",  "kInterface", "kProgram",    "kVersion",
                                                      "service", "kind_of", "add_to",     "note_arrival"};

bool is_kept_by_cpp(std::string_view name) {
  return is_one_of(kWordsOfCpp, name) || is_one_of(kLimits, name) || is_c_macro(name);
}

}  // namespace

std::string cpp_name(const std::string &name) {
  return is_kept_by_cpp(name) || is_one_of(kNamespaces, name) ? name + "_" : name;
}

CppScope::CppScope(const std::string &owner, const std::vector<std::string> &names) {
  std::set<std::string> taken{owner.empty() ? owner : cpp_name(owner)};
  for (const auto &name : names)
    if (cpp_name(name) == name && taken.insert(name).second) names_[name] = name;
  for (const auto &name : names) {
    if (names_.contains(name)) continue;
    auto own = name + "_";
    while (!taken.insert(own).second) own += "_";
    names_[name] = own;
  }
}

namespace {

std::vector<std::string> members(const Struct &it) {
  std::vector<std::string> names;
  for (const auto &field : it.fields) names.push_back(field.name);
  return names;
}
std::vector<std::string> members(const Union &it) {
  std::vector<std::string> names{it.discriminant.name};
  for (const auto &arm : it.arms)
    if (arm.declaration.type.kind != Kind::kVoid) names.push_back(arm.declaration.name);
  return names;
}
std::vector<std::string> members(const Enum &it) {
  std::vector<std::string> names;
  for (const auto &each : it.enumerators) names.push_back(each.name);
  return names;
}

}  // namespace

CppScope::CppScope(const Enum &it) : CppScope("", members(it)) {}
CppScope::CppScope(const Struct &it) : CppScope(it.name, members(it)) {}
CppScope::CppScope(const Union &it) : CppScope(it.name, members(it)) {}

CppScope::CppScope(const Version &it) {
  std::set<std::string> taken(std::begin(kOfStubs), std::end(kOfStubs));
  for (const auto &procedure : it.procedures) {
    auto own = cpp_name(procedure.name);
    while (taken.contains(own) || taken.contains(own + "_async")) own += "_";
    taken.insert({own, own + "_async"});
    names_[procedure.name] = own;
  }
}

std::string cpp_type(const Type &type, const std::string &name_space) {
  switch (type.kind) {
    case Kind::kVoid: return "void";
    case Kind::kInt: return "std::int32_t";
    case Kind::kUnsigned: return "std::uint32_t";
    case Kind::kHyper: return "std::int64_t";
    case Kind::kUnsignedHyper: return "std::uint64_t";
    case Kind::kFloat: return "float";
    case Kind::kDouble: return "double";
    case Kind::kBool: return "bool";
    case Kind::kString: return "std::string";
    case Kind::kOpaque: return "std::byte";
    case Kind::kNamed: break;
  }
  return (name_space.empty() ? "" : "::" + name_space + "::") + cpp_name(type.name);
}

bool is_cpp_namespace(std::string_view name) {
  if (is_c_function(name)) return false;
  while (true) {
    const auto end = std::min(name.find("::"), name.size());
    const auto part = name.substr(0, end);
    const bool named = !part.empty() && !(part[0] >= '0' && part[0] <= '9') && std::ranges::all_of(part, [](char c) {
      return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    });
    if (!named || is_kept_by_cpp(part)) return false;
    if (end == name.size()) return true;
    name.remove_prefix(end + 2);
  }
}

}  // namespace xdr::idl

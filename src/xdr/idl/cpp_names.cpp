// SPDX-License-Identifier: BSD-3-Clause
#include "xdr/idl/cpp_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

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

/// What the classes that are generated for a version call their own.
constexpr std::array<std::string_view, 8> kOfStubs = {"Client",   "Server",  "kInterface", "kProgram",
                                                      "kVersion", "service", "kind_of",    "add_to"};

}  // namespace

std::string cpp_name(const std::string &name) {
  return std::ranges::find(kWordsOfCpp, name) == kWordsOfCpp.end() ? name : name + "_";
}

std::string cpp_procedure(const std::string &name) {
  return std::ranges::find(kOfStubs, name) == kOfStubs.end() ? cpp_name(name) : name + "_";
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
  while (true) {
    const auto end = std::min(name.find("::"), name.size());
    const auto part = name.substr(0, end);
    const bool named = !part.empty() && !(part[0] >= '0' && part[0] <= '9') && std::ranges::all_of(part, [](char c) {
      return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    });
    if (!named || cpp_name(std::string(part)) != part) return false;
    if (end == name.size()) return true;
    name.remove_prefix(end + 2);
  }
}

}  // namespace xdr::idl

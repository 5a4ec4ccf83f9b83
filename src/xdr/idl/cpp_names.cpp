// SPDX-License-Identifier: BSD-3-Clause
#include "xdr/idl/cpp_names.hpp"

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

/// Macros of headers that many programs include, and what GCC defines where its dialects are allowed.
constexpr std::string_view kMacros[] = {
    "errno",     "assert",    "EOF",       "NULL",      "BUFSIZ",     "offsetof",   "va_start",   "va_arg",
    "va_end",    "va_copy",   "setjmp",    "INFINITY",  "NAN",        "HUGE_VAL",   "CHAR_BIT",   "CHAR_MIN",
    "CHAR_MAX",  "SHRT_MIN",  "SHRT_MAX",  "INT_MIN",   "INT_MAX",    "UINT_MAX",   "LONG_MIN",   "LONG_MAX",
    "UCHAR_MAX", "ULONG_MAX", "SIZE_MAX",  "INT8_MIN",  "INT8_MAX",   "INT16_MIN",  "INT16_MAX",  "INT32_MIN",
    "INT32_MAX", "INT64_MIN", "INT64_MAX", "UINT8_MAX", "UINT16_MAX", "UINT32_MAX", "UINT64_MAX", "PATH_MAX",
    "NAME_MAX",  "linux",     "unix",      "i386"};

/// Functions of the C library, which are where a namespace of that name would be.
constexpr std::string_view kFunctions[] = {
    "main",    "abort",   "abs",    "accept", "access",  "alarm", "atexit",  "atoi",     "bind",   "brk",    "bsearch",
    "calloc",  "ceil",    "chdir",  "chmod",  "clock",   "close", "connect", "cos",      "creat",  "daemon", "div",
    "dup",     "erf",     "exit",   "exp",    "fclose",  "fdim",  "floor",   "fma",      "fopen",  "fork",   "fprintf",
    "fread",   "free",    "fstat",  "fwrite", "gamma",   "gets",  "index",   "ioctl",    "kill",   "link",   "listen",
    "log",     "lseek",   "malloc", "mkdir",  "mmap",    "mount", "nan",     "nice",     "open",   "pause",  "perror",
    "pipe",    "poll",    "pow",    "printf", "psignal", "puts",  "qsort",   "raise",    "rand",   "random", "read",
    "realloc", "recv",    "remove", "rename", "rindex",  "rmdir", "round",   "scanf",    "select", "send",   "shutdown",
    "signal",  "sin",     "sleep",  "socket", "sqrt",    "srand", "stat",    "statfs",   "stime",  "strlen", "swab",
    "sync",    "syscall", "system", "tan",    "time",    "times", "trunc",   "truncate", "uname",  "unlink", "wait",
    "write",   "y0",      "y1",     "yn",     "j0",      "j1",    "jn"};

/// What the classes that are generated for a version call their own.
constexpr std::array<std::string_view, 8> kOfStubs = {"Client",   "Server",  "kInterface", "kProgram",
                                                      "kVersion", "service", "kind_of",    "add_to"};

}  // namespace

std::string cpp_name(const std::string &name) {
  const bool is_free = std::ranges::find(kWordsOfCpp, name) == kWordsOfCpp.end() &&
                       std::ranges::find(kMacros, name) == std::end(kMacros);
  return is_free ? name : name + "_";
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
  if (std::ranges::find(kFunctions, name) != std::end(kFunctions)) return false;
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

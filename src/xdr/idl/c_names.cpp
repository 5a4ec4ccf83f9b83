// SPDX-License-Identifier: BSD-3-Clause
#include "xdr/idl/c_names.hpp"

#include "xdr/idl/names.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace xdr::idl {
namespace {

using Kind = Type::Kind;
using Shape = Declaration::Shape;

constexpr std::array<std::string_view, 35> kWordsOfC = {
    "auto",    "break",    "case",     "char",  "const",    "continue", "default",  "do",     "double",
    "else",    "enum",     "extern",   "float", "for",      "goto",     "if",       "inline", "int",
    "long",    "register", "return",   "short", "signed",   "sizeof",   "static",   "struct", "switch",
    "typedef", "union",    "unsigned", "void",  "volatile", "while",    "restrict", "asm"};

/// Macros of headers that many programs include, and what GCC defines where its dialects are allowed.
constexpr std::string_view kMacrosOfC[] = {
    "errno",     "assert",     "EOF",        "NULL",       "BUFSIZ",    "offsetof",  "va_start",
    "va_arg",    "va_end",     "va_copy",    "setjmp",     "INFINITY",  "NAN",       "HUGE_VAL",
    "CHAR_BIT",  "CHAR_MIN",   "CHAR_MAX",   "SHRT_MIN",   "SHRT_MAX",  "INT_MIN",   "INT_MAX",
    "UINT_MAX",  "LONG_MIN",   "LONG_MAX",   "UCHAR_MAX",  "ULONG_MAX", "SIZE_MAX",  "INT8_MIN",
    "INT8_MAX",  "INT16_MIN",  "INT16_MAX",  "INT32_MIN",  "INT32_MAX", "INT64_MIN", "INT64_MAX",
    "UINT8_MAX", "UINT16_MAX", "UINT32_MAX", "UINT64_MAX", "linux",     "unix",      "i386"};

/// Functions of the C library.
constexpr std::string_view kFunctionsOfC[] = {
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

/// Types of <rpc/rpc.h>, and macros, that are written as constants are.
constexpr std::array<std::string_view, 6> kWordsOfRpc = {"XDR", "CLIENT", "SVCXPRT", "AUTH", "TRUE", "FALSE"};

/// What has a function of libtirpc's for itself: a type called "array" would need another xdr_array().
constexpr std::array<std::string_view, 17> kCodersOfRpc = {
    "accepted_reply", "array", "authunix_parms", "bytes",   "callhdr",   "callmsg",  "des_block", "free",      "netobj",
    "opaque_auth",    "pmap",  "pmaplist",       "pointer", "reference", "replymsg", "vector",    "wrapstring"};

/// A long has 8 bytes in C on most machines, and 4 in XDR.
constexpr std::array<CNumber, 18> kNumbers = {{
    {"int", "int", "xdr_int", 4},
    {"unsigned int", "u_int", "xdr_u_int", 4},
    {"u_int", "u_int", "xdr_u_int", 4},
    {"int32_t", "int32_t", "xdr_int32_t", 4},
    {"uint32_t", "uint32_t", "xdr_uint32_t", 4},
    {"u_int32_t", "u_int32_t", "xdr_u_int32_t", 4},
    {"long", "long", "xdr_long", 0},
    {"unsigned long", "u_long", "xdr_u_long", 0},
    {"u_long", "u_long", "xdr_u_long", 0},
    {"hyper", "quad_t", "xdr_quad_t", 8},
    {"unsigned hyper", "u_quad_t", "xdr_u_quad_t", 8},
    {"int64_t", "int64_t", "xdr_int64_t", 8},
    {"uint64_t", "uint64_t", "xdr_uint64_t", 8},
    {"u_int64_t", "u_int64_t", "xdr_u_int64_t", 8},
    {"float", "float", "xdr_float", 4},
    {"double", "double", "xdr_double", 8},
    {"bool", "bool_t", "nessie_xdr_bool", 0},
    {"bool_t", "bool_t", "nessie_xdr_bool", 0},
}};

bool is_kept_by_headers(std::string_view name) { return is_c_macro(name) || is_one_of(kWordsOfRpc, name); }
bool has_small_letter(const std::string &name) {
  return std::ranges::any_of(name, [](char c) { return c >= 'a' && c <= 'z'; });
}

}  // namespace

bool is_c_macro(std::string_view name) { return is_one_of(kMacrosOfC, name); }
bool is_c_function(std::string_view name) { return is_one_of(kFunctionsOfC, name); }

std::string c_name(const std::string &name) {
  return is_one_of(kWordsOfC, name) || is_kept_by_headers(name) ? name + "_" : name;
}

CNumberNames::CNumberNames(const Interface &interface) {
  for (const auto &definition : interface.definitions) {
    for (const auto *member : members_of(definition)) {
      members_.insert({member->name + "_len", member->name + "_val"});
      if (!std::holds_alternative<Typedef>(definition)) members_.insert(member->name);
    }
    if (const auto name = type_name_of(definition); !name.empty()) others_.insert({name, "xdr_" + name, name + "_u"});
    if (const auto *it = std::get_if<Constant>(&definition)) others_.insert(it->name);
    if (const auto *it = std::get_if<Enum>(&definition))
      for (const auto &each : it->enumerators) others_.insert(each.name);
  }
  for (const auto &definition : interface.definitions)
    if (const auto *it = std::get_if<Program>(&definition)) add_program(*it);
  for (const auto &name : ambiguous_) macros_.erase(name);
}

void CNumberNames::add_program(const Program &it) {
  add(it.name, it.number.number);
  for (const auto &version : it.versions) {
    add(version.name, version.number.number);
    for (const auto &procedure : version.procedures) add(procedure.name, procedure.number.number);
  }
}

void CNumberNames::add(const std::string &name, const Number &number) {
  if (c_name(name) != name || members_.contains(name) || others_.contains(name)) return;
  const auto [known, added] = macros_.emplace(name, number);
  if (!added && known->second != number) ambiguous_.insert(name);
}

bool CNumberNames::is_enumerator(const Constant &it) const {
  return members_.contains(it.name) || (has_small_letter(it.name) && !is_c_function(it.name));
}

std::string CNumberNames::undefined() const {
  std::string lines;
  for (const auto &[name, number] : macros_)
    if (has_small_letter(name)) lines += fmt::format("#undef {}\n", name);
  return lines.empty() ? lines : "/* They would change what follows. */\n" + lines;
}

std::optional<Fault> CNumberNames::find_fault(const Interface &interface) const {
  for (const auto &definition : interface.definitions) {
    if (const auto name = type_name_of(definition); is_one_of(kCodersOfRpc, name))
      return Fault{position_of(definition),
                   fmt::format("in C, libtirpc has an xdr_{} of its own: rename '{}'", name, name)};
    const auto *it = std::get_if<Constant>(&definition);
    if (it == nullptr) continue;
    if (is_kept_by_headers(it->name))
      return Fault{it->at, fmt::format("'{}' has a meaning of its own in C's headers: rename it", it->name)};
    if (members_.contains(it->name) && is_c_function(it->name))
      return Fault{it->at, fmt::format("'{}' is a function of C's, and a field's name as well: rename one", it->name)};
  }
  return std::nullopt;
}

std::string c_macro(std::string text) {
  for (auto &c : text) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    if (!(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9')) c = '_';
  }
  return text;
}

const CNumber *c_number(const Type &type) {
  if (type.kind == Kind::kNamed) return nullptr;
  const auto found = std::ranges::find(kNumbers, type.name, &CNumber::word);
  return found == kNumbers.end() ? nullptr : &*found;
}

std::string c_type(const Type &type) {
  if (type.kind == Kind::kNamed) return c_name(type.name);
  const auto *number = c_number(type);
  return number != nullptr ? std::string(number->type) : "char";
}

bool is_c_array(const TypeGraph &graph, const Definition &definition) {
  const auto *it = std::get_if<Typedef>(&definition);
  if (it == nullptr) return false;
  if (it->declaration.shape != Shape::kPlain) return it->declaration.shape == Shape::kFixed;
  const auto &behind = graph.behind(it->declaration.type);
  return behind.kind == Kind::kNamed && is_c_array(graph, graph.at(behind.name));
}

}  // namespace xdr::idl

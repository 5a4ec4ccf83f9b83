// SPDX-License-Identifier: BSD-3-Clause
#include "xdr/idl/c_names.hpp"

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

}  // namespace

std::string c_name(const std::string &name) {
  return std::ranges::find(kWordsOfC, name) == kWordsOfC.end() ? name : name + "_";
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
  const auto &[type, shape, size, name, at] = it->declaration;
  return shape == Shape::kFixed ||
         (shape == Shape::kPlain && type.kind == Kind::kNamed && is_c_array(graph, graph.at(type.name)));
}

}  // namespace xdr::idl

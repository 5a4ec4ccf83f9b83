// SPDX-License-Identifier: BSD-3-Clause
#include "xdr/idl/fortran_names.hpp"

#include "xdr/idl/names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <limits>

namespace xdr::idl {
namespace {

constexpr std::size_t kMostCharacters = 63, kMostColumns = 120;

/// Types of the language, and what generated code calls.
constexpr std::array<std::string_view, 29> kOfModules = {
    "integer",   "real",       "complex",   "character",  "logical",      "doubleprecision", "type",     "class",
    "procedure", "all",        "allocated", "associated", "c_associated", "c_bool",          "c_double", "c_f_pointer",
    "c_float",   "c_int8_t",   "c_int32_t", "c_int64_t",  "c_loc",        "c_null_ptr",      "c_ptr",    "int",
    "merge",     "move_alloc", "null",      "present",    "size"};
/// Its variables: they hide constants, which is no harm, and types, which is.
constexpr std::array<std::string_view, 30> kOfProcedures = {
    "bytes",      "call",    "count",         "failed", "i",       "it",         "made",   "more",    "most",
    "or_none",    "outcome", "pending",       "reader", "result",  "request",    "self",   "sizer",   "status",
    "timeout_ms", "unused",  "alike",         "writer", "runtime", "idempotent", "buffer", "service", "peer",
    "provider",   "one_way", "fail_when_busy"};
constexpr std::array<std::string_view, 3> kPrefixes = {"nessie_", "nssi_", "xdr_"};

std::string lower(std::string name) {
  for (auto &c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

/// FNV-1a, 32 bits.
std::uint32_t hash_of(std::string_view text) {
  std::uint32_t hash = 2166136261u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash;
}

std::string shortened(const std::string &name, std::size_t most) {
  if (name.size() <= most) return name;
  return fmt::format("{}_{:08x}", name.substr(0, most - 9), hash_of(lower(name)));
}

/// Of a file's name, or an interface's.
std::string spelled(std::string name) {
  for (auto &c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  if (name.empty() || std::isalpha(static_cast<unsigned char>(name[0])) == 0) name.insert(0, 1, 'x');
  return name;
}

}  // namespace

FortranNames FortranNames::of_module() {
  FortranNames names;
  names.taken_.insert(kOfModules.begin(), kOfModules.end());
  names.keeps_prefixes_ = true;
  return names;
}

bool FortranNames::is_kept(const std::string &name) const {
  const auto begins = [folded = lower(name)](std::string_view prefix) { return folded.starts_with(prefix); };
  return keeps_prefixes_ && std::ranges::any_of(kPrefixes, begins);
}

bool FortranNames::take(const std::string &name) { return taken_.insert(lower(name)).second; }

std::string FortranNames::claim_type(const std::string &wanted) {
  const auto folded = lower(wanted);
  if (folded.starts_with("argument") || is_one_of(kOfProcedures, folded)) return claim(wanted + "_");
  return claim(wanted);
}

std::string FortranNames::claim(const std::string &wanted) {
  const auto name = spelled(wanted);
  if (auto it = shortened(name, kMostCharacters); !is_kept(it) && take(it)) return it;
  if (auto it = shortened(name, kMostCharacters - 1) + "_"; take(it)) return it;
  for (int i = 2;; ++i)
    if (auto it = fmt::format("{}_{}", shortened(name, kMostCharacters - 11), i); take(it)) return it;
}

bool is_fortran_hyper(const Number &number) {
  return number.magnitude > std::uint64_t{std::numeric_limits<std::int32_t>::max()} + (number.negative ? 1 : 0);
}

std::string fortran_literal(const Number &number, int bytes) {
  const auto word = number.negative ? ~number.magnitude + 1 : number.magnitude;
  const auto value = bytes == 8 ? static_cast<std::int64_t>(word) : static_cast<std::int32_t>(word);
  const auto least = bytes == 8 ? std::numeric_limits<std::int64_t>::min() : std::numeric_limits<std::int32_t>::min();
  const auto *kind = bytes == 8 ? "c_int64_t" : "c_int32_t";
  // Fortran's numbers have no sign: that of the least one would be too large without it.
  if (value == least) return fmt::format("(-{}_{} - 1_{})", -(value + 1), kind, kind);
  return fmt::format("{}_{}", value, kind);
}

std::string fortran_count(std::uint64_t count) {
  const bool is_default = count <= std::uint64_t{std::numeric_limits<std::int32_t>::max()};
  return fmt::format("{}{}", count, is_default ? "" : "_c_int64_t");
}

std::string fortran_line(int indent, std::string_view text) {
  std::string made(static_cast<std::size_t>(indent), ' ');
  const std::string next(static_cast<std::size_t>(indent) + 4, ' ');
  std::size_t column = made.size();
  while (column + text.size() > kMostColumns) {
    const auto room = kMostColumns - column;
    const auto space = text.rfind(' ', room);
    if (space != std::string_view::npos && space != 0) {
      made += fmt::format("{} &\n{}", text.substr(0, space), next);
      text.remove_prefix(space + 1);
      column = next.size();
    } else {  // no words end there: what follows another & goes on where the line broke off, be it within a word
      const auto mark = text.find_last_of("(,%", room - 1);
      const auto end = mark == std::string_view::npos ? room : mark + 1;
      made += fmt::format("{}&\n{}&", text.substr(0, end), next);
      text.remove_prefix(end);
      column = next.size() + 1;
    }
  }
  return made + std::string(text) + "\n";
}

}  // namespace xdr::idl

// SPDX-License-Identifier: BSD-3-Clause
#include "xdr/idl/model.hpp"

#include <fmt/core.h>

#include <limits>

namespace xdr::idl {

std::vector<const Declaration *> members_of(const Definition &definition) {
  std::vector<const Declaration *> members;
  if (const auto *it = std::get_if<Struct>(&definition))
    for (const auto &field : it->fields) members.push_back(&field);
  if (const auto *it = std::get_if<Union>(&definition)) {
    members.push_back(&it->discriminant);
    for (const auto &arm : it->arms) members.push_back(&arm.declaration);
  }
  if (const auto *it = std::get_if<Typedef>(&definition)) members.push_back(&it->declaration);
  return members;
}

std::string type_name_of(const Definition &definition) {
  if (const auto *it = std::get_if<Enum>(&definition)) return it->name;
  if (const auto *it = std::get_if<Struct>(&definition)) return it->name;
  if (const auto *it = std::get_if<Union>(&definition)) return it->name;
  if (const auto *it = std::get_if<Typedef>(&definition)) return it->declaration.name;
  return {};
}

Position position_of(const Definition &definition) {
  return std::visit(
      [](const auto &it) {
        if constexpr (requires { it.declaration; })
          return it.declaration.at;
        else
          return it.at;
      },
      definition);
}

std::string literal(const Number &number) {
  constexpr std::uint64_t kLargest = std::numeric_limits<std::int64_t>::max();
  if (number.negative && number.magnitude > kLargest) return fmt::format("-{} - 1", kLargest);
  if (number.negative) return fmt::format("-{}", number.magnitude);
  return fmt::format("{}{}", number.magnitude, number.magnitude > kLargest ? "u" : "");
}

}  // namespace xdr::idl

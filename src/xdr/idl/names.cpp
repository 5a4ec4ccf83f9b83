// SPDX-License-Identifier: BSD-3-Clause
#include "xdr/idl/names.hpp"

#include <fmt/core.h>

#include <map>
#include <variant>

namespace xdr::idl {

PlacedNames names_of(const Interface &interface, bool with_enumerators) {
  PlacedNames names;
  for (const auto &definition : interface.definitions) {
    const auto name_of = [](const auto &it) {
      if constexpr (requires { it.declaration; })
        return it.declaration.name;
      else
        return it.name;
    };
    names.emplace_back(std::visit(name_of, definition), position_of(definition));
    if (const auto *it = std::get_if<Enum>(&definition); it != nullptr && with_enumerators)
      for (const auto &each : it->enumerators) names.emplace_back(each.name, each.at);
  }
  return names;
}

std::optional<Fault> find_alike(const PlacedNames &names, std::string (*spelled)(const std::string &),
                                std::string_view language) {
  std::map<std::string, const PlacedNames::value_type *> taken;
  for (const auto &each : names)
    if (const auto [first, added] = taken.emplace(spelled(each.first), &each); !added)
      return Fault{each.second, fmt::format("'{}' is called {} in {}, as '{}' of line {} is: rename one", each.first,
                                            first->first, language, first->second->first, first->second->second.line)};
  return std::nullopt;
}

}  // namespace xdr::idl

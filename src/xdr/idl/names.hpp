// SPDX-License-Identifier: BSD-3-Clause
// What naming things takes in every language: words that it keeps for itself, and names that it cannot tell apart.
#pragma once

#include "xdr/idl/model.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace xdr::idl {

bool is_one_of(const auto &words, std::string_view name) {
  return std::ranges::find(words, name) != std::ranges::end(words);
}

using PlacedNames = std::vector<std::pair<std::string, Position>>;
/// The constants, types and programs; in a language where enumerators are not their enum's alone, these too.
PlacedNames names_of(const Interface &interface, bool with_enumerators);
/// That two of `names` are one in `language`, which spells each as `spelled` says. None: all differ.
std::optional<Fault> find_alike(const PlacedNames &names, std::string (*spelled)(const std::string &),
                                std::string_view language);

}  // namespace xdr::idl

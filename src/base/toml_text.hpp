// SPDX-License-Identifier: BSD-3-Clause
// What a value of TOML is as a setting's text.
#pragma once

#include <fmt/format.h>

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include <optional>
#include <string>

namespace nessie {

/// An array is its values with blanks between them. Empty: no setting takes such a value.
inline std::optional<std::string> toml_text(const toml::node &node) {
  if (auto value = node.value_exact<std::string>()) return value;
  if (const auto flag = node.value_exact<bool>()) return *flag ? "true" : "false";
  if (const auto integer = node.value_exact<std::int64_t>()) return std::to_string(*integer);
  if (const auto number = node.value_exact<double>()) return fmt::format("{}", *number);
  const auto *array = node.as_array();
  if (array == nullptr) return std::nullopt;
  std::string text;
  for (const auto &each : *array) {
    const auto one = each.is_array() ? std::nullopt : toml_text(each);
    if (!one) return std::nullopt;
    text += (&each == array->get(0) ? "" : " ") + *one;
  }
  return text;
}

}  // namespace nessie

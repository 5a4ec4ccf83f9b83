// SPDX-License-Identifier: BSD-3-Clause
// How a file of TOML is read, and what a value of it is as a setting's text.
#pragma once

#include <fmt/format.h>

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

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

/// What is wrong with a file of TOML, and where.
struct TomlFault {
  std::size_t line = 0, column = 0;
  std::string what;
};

/// The line of a key with more parts than any has, which toml++ would follow deeper than the stack goes; 0: none.
inline std::size_t line_of_endless_key(std::string_view text) {
  constexpr std::size_t kMostParts = 1000;
  std::size_t parts = 0;
  for (const auto &letter : text) {
    parts = std::string_view("=,{[#\n").find(letter) != std::string_view::npos ? 0 : parts + (letter == '.');
    if (parts > kMostParts) return 1 + static_cast<std::size_t>(std::count(text.data(), &letter, '\n'));
  }
  return 0;
}

/// Nothing: `table` is what the text says.
inline std::optional<TomlFault> parse_toml_text(std::string_view text, toml::table &table) {
  if (const auto line = line_of_endless_key(text); line != 0) return TomlFault{line, 1, "a key has too many parts"};
  auto parsed = toml::parse(text);
  if (parsed) {
    table = std::move(parsed).table();
    return std::nullopt;
  }
  const auto &where = parsed.error().source().begin;
  return TomlFault{where.line, where.column, std::string(parsed.error().description())};
}

}  // namespace nessie

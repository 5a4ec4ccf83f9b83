// SPDX-License-Identifier: BSD-3-Clause
#include "base/setting_names.hpp"

#include "base/nearest.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <optional>

namespace nessie {
namespace {

/// In one of these everything is a setting of Nessie's.
constexpr std::string_view kGroups[] = {"nnti.", "nssi.", "staging.", "run.", "directory.", "transfer.", "streams."};
constexpr std::string_view kPrefix = "NESSIE_";
/// Variables that are no settings, but Nessie's.
constexpr std::string_view kOtherVariables[] = {"NESSIE_CONFIG", "NESSIE_LOG"};

/// "nssi.op.*.pool" → "nssi.op.", ".pool".
struct Pattern {
  explicit Pattern(std::string_view name)
      : head(name.substr(0, name.find('*'))), tail(name.substr(std::min(name.size(), name.find('*') + 1))) {}
  bool matches(std::string_view key) const {
    return key.size() > head.size() + tail.size() && key.starts_with(head) && key.ends_with(tail);
  }
  std::string_view head, tail;
};

/// "nssi.op.NAME.pool" → "nssi.op.*.pool".
std::string pattern_of(std::string_view name) {
  constexpr std::string_view kOwnPart = "NAME";
  std::string pattern(name);
  if (const auto at = pattern.find(kOwnPart); at != std::string::npos) pattern.replace(at, kOwnPart.size(), 1, '*');
  return pattern;
}

bool is_pattern(std::string_view name) { return name.find('*') != std::string_view::npos; }

/// The settings that `key` may be meant as; of those with a `*` its own part stands there: "nssi.op.fetch.rol" may be
/// "nssi.op.fetch.role".
std::vector<std::string> candidates_for(std::string_view key) {
  std::vector<std::string> candidates;
  for (const auto &name : setting_names()) {
    const Pattern pattern(name);
    const auto last = key.rfind('.');
    if (!is_pattern(name))
      candidates.push_back(name);
    else if (key.starts_with(pattern.head) && last != std::string_view::npos && last > pattern.head.size())
      candidates.push_back(std::string(key.substr(0, last)) + std::string(pattern.tail));
  }
  return candidates;
}

/// As variable_of(), of names with a `*` too, without the prefix.
std::string capitals_of(std::string_view key) {
  std::string name;
  for (char c : key) {
    auto byte = static_cast<unsigned char>(c);
    name += std::isalnum(byte) || c == '*' ? static_cast<char>(std::toupper(byte)) : '_';
  }
  return name;
}

bool is_variable(std::string_view variable) {
  return std::ranges::find(kOtherVariables, variable) != std::end(kOtherVariables) ||
         std::ranges::any_of(setting_names(), [&](const std::string &name) {
           const auto capitals = std::string(kPrefix) + capitals_of(name);
           return is_pattern(name) ? Pattern(capitals).matches(variable) : capitals == variable;
         });
}

}  // namespace

std::span<const Setting> settings() {
#define NESSIE_SETTING(name, flag, value, meaning) {name, flag, value, meaning},
  static constexpr Setting kSettings[] = {
#include "settings.inc"
  };
#undef NESSIE_SETTING
  return kSettings;
}

const std::vector<std::string> &setting_names() {
  static const auto *names = [] {
    auto *made = new std::vector<std::string>;
    for (const auto &setting : settings()) made->push_back(pattern_of(setting.name));
    std::ranges::sort(*made);
    return made;
  }();
  return *names;
}

bool is_setting(std::string_view key) {
  return std::ranges::any_of(setting_names(), [&](const std::string &name) {
    return is_pattern(name) ? Pattern(name).matches(key) : name == key;
  });
}

std::string variable_of(std::string_view key) { return std::string(kPrefix) + capitals_of(key); }

std::string doubt_about_key(std::string_view key) {
  if (is_setting(key)) return {};
  if (key == "log") return "log is not read from here; set NESSIE_LOG";
  const auto nearest = nearest_of(key, candidates_for(key));
  if (!nearest.empty()) return fmt::format("there is no setting {}; did you mean {}?", key, nearest);
  const bool is_ours = std::ranges::any_of(kGroups, [&](std::string_view group) { return key.starts_with(group); });
  return is_ours ? fmt::format("there is no setting {}", key) : std::string();
}

std::string doubt_about_variable(std::string_view variable) {
  if (!variable.starts_with(kPrefix) || is_variable(variable)) return {};
  std::vector<std::string> names{"LOG", "CONFIG"};
  for (const auto &name : setting_names())
    if (!is_pattern(name)) names.push_back(capitals_of(name));
  const auto nearest = nearest_of(variable.substr(kPrefix.size()), names);
  return nearest.empty() ? std::string()
                         : fmt::format("{} is no setting; did you mean {}{}?", variable, kPrefix, nearest);
}

}  // namespace nessie

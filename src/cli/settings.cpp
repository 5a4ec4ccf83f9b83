// SPDX-License-Identifier: BSD-3-Clause
#include "commands.hpp"

#include "speech.hpp"

#include <base/config.hpp>
#include <base/setting_names.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdio>

namespace nessie::cli {

namespace {

/// Secrets are nobody's to read who looks over a shoulder.
std::string value_of(const Config &config, const std::string &name) {
  const auto value = config.get(name);
  if (!value) return {};
  return name.find("credential") != std::string::npos && !name.ends_with("_file") ? "(set)" : *value;
}

std::string without_quotes(std::string text) {
  std::erase(text, '`');
  return text;
}

void print_json(const Config &config) {
  for (const auto &setting : settings()) {
    const nlohmann::ordered_json line{{"name", setting.name},
                                      {"flag", setting.flag},
                                      {"default", setting.value},
                                      {"meaning", setting.meaning},
                                      {"value", value_of(config, setting.name)},
                                      {"source", config.source_of(setting.name)}};
    fmt::print("{}\n", line.dump());
  }
}

void print(const Config &config) {
  for (const auto &setting : settings()) {
    const auto value = value_of(config, setting.name), source = config.source_of(setting.name);
    const auto usual = without_quotes(setting.value);
    fmt::print(
        "{}{}\n    {}\n", setting.name,
        source.empty() ? (usual.empty() ? "" : fmt::format(" ({})", usual)) : fmt::format(" = {} ({})", value, source),
        without_quotes(setting.meaning));
  }
}

}  // namespace

int list_settings(bool as_json) {
  const auto config = Config::load();
  if (!config.ok()) return say_failure("info", config.error().message);
  as_json ? print_json(*config) : print(*config);
  return std::fflush(stdout) == 0 ? 0 : 1;
}

}  // namespace nessie::cli

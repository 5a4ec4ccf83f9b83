// SPDX-License-Identifier: BSD-3-Clause
#include "base/config.hpp"

#include "base/file.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <cstring>

namespace nessie {
namespace {

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  auto first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

/// "staging.memory" → "NESSIE_STAGING_MEMORY".
std::string variable_of(std::string_view key) {
  std::string name = "NESSIE_";
  for (char c : key) {
    auto byte = static_cast<unsigned char>(c);
    name += std::isalnum(byte) ? static_cast<char>(std::toupper(byte)) : '_';
  }
  return name;
}

Error bad_setting(std::string_view key, std::string_view value, std::string_view expected) {
  return {Code::kInvalidArgument,
          fmt::format("setting {} ({}) is '{}'; expected {}", key, variable_of(key), value.substr(0, 80), expected)};
}

bool is_key(std::string_view text) {
  if (text.empty()) return false;
  for (char c : text)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '_' && c != '-') return false;
  return true;
}

/// "500ms" → 500; the number may have no unit, which is seconds.
std::optional<std::int64_t> parse_duration_ms(std::string_view text) {
  std::int64_t number = 0;
  auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  auto unit = trim(text.substr(static_cast<std::size_t>(end - text.data())));
  std::int64_t factor = unit.empty() || unit == "s" ? 1000
                        : unit == "ms"              ? 1
                        : unit == "min"             ? 60'000
                        : unit == "h"               ? 3'600'000
                                                    : 0;
  std::int64_t product = 0;
  if (problem != std::errc{} || factor == 0 || number < 0 || __builtin_mul_overflow(number, factor, &product))
    return std::nullopt;
  return product;
}

}  // namespace

Result<Config> Config::load() {
  const char *path = std::getenv("NESSIE_CONFIG");
  if (path == nullptr || *path == '\0') return Config{};
  auto text = read_file(path);
  if (!text.ok()) {
    auto error = text.error();
    error.message = fmt::format("cannot read {}, which NESSIE_CONFIG names: {}", path, std::strerror(error.cause));
    return error;
  }
  auto config = std::string_view(path).ends_with(".toml") ? parse_toml(*text) : parse_file_text(*text);
  if (config.ok()) return config;
  auto error = config.error();
  error.message = fmt::format("{}: {}", path, error.message);
  return error;
}

Result<Config> Config::parse_file_text(std::string_view text) {
  Config config;
  for (int number = 1; !text.empty(); ++number) {
    auto end = text.find('\n');
    auto line = trim(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty() || line.front() == '#') continue;
    auto equals = line.find('=');
    auto key = trim(line.substr(0, equals));
    if (equals == std::string_view::npos || !is_key(key))
      return Error{Code::kInvalidArgument,
                   fmt::format("line {}: '{}' is no 'setting = value'", number, line.substr(0, 80))};
    config.file_.insert_or_assign(std::string(key), std::string(trim(line.substr(equals + 1))));
  }
  return config;
}

Status Config::reload() {
  auto config = load();
  if (!config.ok()) return config.error();
  file_ = std::move(config->file_);
  return {};
}

void Config::set(std::string_view key, std::string value) {
  flags_.insert_or_assign(std::string(key), std::move(value));
}

std::optional<std::string> Config::get(std::string_view key) const {
  auto name = std::string(key);
  if (auto flag = flags_.find(name); flag != flags_.end()) return flag->second;
  if (const char *variable = std::getenv(variable_of(key).c_str())) return variable;
  if (auto line = file_.find(name); line != file_.end()) return line->second;
  return std::nullopt;
}

std::string Config::source_of(std::string_view key) const {
  auto name = std::string(key);
  if (flags_.contains(name)) return "a flag";
  if (std::getenv(variable_of(key).c_str()) != nullptr) return variable_of(key);
  return file_.contains(name) ? name + " in NESSIE_CONFIG" : std::string();
}

std::string Config::get_or(std::string_view key, std::string_view fallback) const {
  auto value = get(key);
  return value ? *value : std::string(fallback);
}

Result<bool> Config::get_bool(std::string_view key, bool fallback) const {
  auto value = get(key);
  if (!value) return fallback;
  for (const char *yes : {"1", "true", "yes", "on"})
    if (*value == yes) return true;
  for (const char *no : {"0", "false", "no", "off"})
    if (*value == no) return false;
  return bad_setting(key, *value, "on or off");
}

Result<std::int64_t> Config::get_int(std::string_view key, std::int64_t fallback) const {
  auto value = get(key);
  if (!value) return fallback;
  std::int64_t number = 0;
  const std::string_view text = *value;
  auto [end, problem] = std::from_chars(text.begin(), text.end(), number);
  if (problem != std::errc{} || end != text.end()) return bad_setting(key, *value, "a whole number");
  return number;
}

Result<std::uint64_t> Config::get_size(std::string_view key, std::uint64_t fallback) const {
  auto value = get(key);
  if (!value) return fallback;
  auto size = parse_size(*value);
  if (!size.ok()) return bad_setting(key, *value, "a size such as 4096, 64K, 512MiB or 2G");
  return size;
}

Result<std::chrono::milliseconds> Config::get_duration(std::string_view key, std::chrono::milliseconds fallback) const {
  auto value = get(key);
  if (!value) return fallback;
  auto duration_ms = parse_duration_ms(*value);
  if (!duration_ms) return bad_setting(key, *value, "a time such as 30, 30s, 500ms or 2min");
  return std::chrono::milliseconds(*duration_ms);
}

std::vector<std::string> split(std::string_view list, std::string_view separators) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin < list.size();) {
    const auto end = std::min(list.find_first_of(separators, begin), list.size());
    if (end > begin) parts.emplace_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace nessie

// SPDX-License-Identifier: BSD-3-Clause
#include "base/config.hpp"

#include "base/file.hpp"
#include "base/log.hpp"
#include "base/setting_names.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <map>
#include <mutex>
#include <unordered_set>

namespace nessie {
namespace {

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  auto first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

bool is_key(std::string_view text) {
  if (text.empty()) return false;
  for (char c : text)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '_' && c != '-') return false;
  return true;
}

/// Who asks for more means for ever. So a moment that is so far away can be told in nanoseconds, as clocks do.
constexpr std::int64_t kLongestMs = std::int64_t{100} * 365 * 24 * 3'600'000;

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
  return std::min(product, kLongestMs);
}

/// The whole of `text`, as a number of that type.
template <class Number> std::optional<Number> parse_number(std::string_view text) {
  Number number = 0;
  auto [end, problem] = std::from_chars(text.begin(), text.end(), number);
  return problem == std::errc{} && end == text.end() ? std::optional(number) : std::nullopt;
}

/// Once in a process, however often it reads its settings.
void warn_once(const std::string &text) {
  static std::mutex mutex;
  static auto *told = new std::unordered_set<std::string>;  // never destroyed: destructors of statics may read settings
  const std::lock_guard lock(mutex);
  if (told->insert(text).second) log::warning("{}", text);
}

Result<Config> load_file(const std::string &path) {
  auto text = read_settings_file(path);
  if (!text.ok()) {
    auto error = text.error();
    error.message = fmt::format("{}; NESSIE_CONFIG names it", error.message);
    return error;
  }
  auto config = path.ends_with(".toml") ? Config::parse_toml(*text) : Config::parse_file_text(*text);
  if (config.ok()) return config;
  auto error = config.error();
  error.message = fmt::format("{}: {}", path, error.message);
  return error;
}

}  // namespace

Result<Config> Config::load() {
  const char *path = std::getenv("NESSIE_CONFIG");
  auto config = path == nullptr || *path == '\0' ? Result<Config>(Config{}) : load_file(path);
  if (!config.ok()) return config;
  if (path != nullptr) config->path_ = path;
  config->warn_of_misspelt();
  return config;
}

void Config::warn_of_misspelt() const {
  std::multimap<std::size_t, std::string> keys;  // by their lines
  for (const auto &[key, line] : file_) keys.emplace(line.number, key);
  for (const auto &[number, key] : keys)
    if (const auto doubt = doubt_about_key(key); !doubt.empty())
      warn_once(fmt::format("{}, line {}: {}", path_, number, doubt));
  for (char **variable = environ; variable != nullptr && *variable != nullptr; ++variable)
    if (const auto doubt = doubt_about_variable(std::string_view(*variable).substr(0, std::strcspn(*variable, "=")));
        !doubt.empty())
      warn_once(doubt);
}

Result<Config> Config::parse_file_text(std::string_view text) {
  Config config;
  for (std::size_t number = 1; !text.empty(); ++number) {
    auto end = text.find('\n');
    auto line = trim(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty() || line.front() == '#') continue;
    auto equals = line.find('=');
    auto key = trim(line.substr(0, equals));
    if (equals == std::string_view::npos || !is_key(key))
      return Error{Code::kInvalidArgument,
                   fmt::format("line {}: '{}' is no 'setting = value'", number, line.substr(0, 80))};
    config.file_.insert_or_assign(std::string(key), Line{std::string(trim(line.substr(equals + 1))), number});
  }
  return config;
}

Status Config::reload() {
  auto config = load();
  if (!config.ok()) return config.error();
  file_ = std::move(config->file_);
  path_ = std::move(config->path_);
  return {};
}

void Config::set(GivenSetting setting) {
  if (const auto doubt = doubt_about_key(setting.name); !doubt.empty()) warn_once(doubt);
  flags_.insert_or_assign(setting.name, setting);
}

std::optional<std::string> Config::get(std::string_view key) const {
  auto name = std::string(key);
  if (auto flag = flags_.find(name); flag != flags_.end()) return flag->second.value;
  if (const char *variable = std::getenv(variable_of(key).c_str())) return variable;
  if (auto line = file_.find(name); line != file_.end()) return line->second.value;
  return std::nullopt;
}

std::string Config::source_of(std::string_view key) const {
  auto name = std::string(key);
  if (const auto flag = flags_.find(name); flag != flags_.end()) return flag->second.source;
  if (std::getenv(variable_of(key).c_str()) != nullptr) return variable_of(key);
  const auto line = file_.find(name);
  if (line == file_.end()) return {};
  return fmt::format("{}, line {}", path_.empty() ? "the settings" : path_, line->second.number);
}

Error Config::bad_value(std::string_view key, std::string_view expected) const {
  const auto source = source_of(key);
  if (source.empty()) return {Code::kInvalidArgument, fmt::format("setting {}: expected {}", key, expected)};
  return {Code::kInvalidArgument, fmt::format("setting {} (from {}) is '{}'; expected {}", key, source,
                                              get_or(key, "").substr(0, 80), expected)};
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
  return bad_value(key, "on or off");
}

Result<std::int64_t> Config::get_int(std::string_view key, std::int64_t fallback) const {
  auto value = get(key);
  if (!value) return fallback;
  const auto number = parse_number<std::int64_t>(*value);
  if (!number) return bad_value(key, "a whole number");
  return *number;
}

Result<std::uint64_t> Config::get_count(std::string_view key, std::uint64_t fallback) const {
  auto value = get(key);
  if (!value) return fallback;
  const auto number = parse_number<std::uint64_t>(*value);
  if (!number) return bad_value(key, "a number such as 0, 64 or 4096, without a unit");
  return *number;
}

Result<std::uint64_t> Config::get_size(std::string_view key, std::uint64_t fallback) const {
  auto value = get(key);
  if (!value) return fallback;
  auto size = parse_size(*value);
  if (!size.ok()) return bad_value(key, "a size such as 4096, 64K, 512MiB or 2G");
  return size;
}

Result<std::chrono::milliseconds> Config::get_duration(std::string_view key, std::chrono::milliseconds fallback) const {
  auto value = get(key);
  if (!value) return fallback;
  auto duration_ms = parse_duration_ms(*value);
  if (!duration_ms) return bad_value(key, "a time such as 30, 30s, 500ms or 2min");
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

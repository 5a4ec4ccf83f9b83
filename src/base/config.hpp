// SPDX-License-Identifier: BSD-3-Clause
// Settings, in one place. A setting "staging.memory" is looked up, first found wins, as
//   1. a value set by the program's flags (set()),
//   2. the environment variable NESSIE_STAGING_MEMORY,
//   3. the file that NESSIE_CONFIG names: a line `staging.memory = 1G` or, if its name ends in .toml, TOML's
//      `staging.memory = "1G"`, or `memory = "1G"` under `[staging]`.
// What looks like a misspelt setting, in any of the three, is logged as a warning (setting_names.hpp).
#pragma once

#include <nessie/result.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace nessie {

/// A setting, and the value that it is to have.
struct GivenSetting {
  std::string name, value;
  std::string source = "a flag";  ///< where it comes from, for who is told of it: "job.toml, line 12"
};

class Config {
 public:
  /// Reads the environment and, if NESSIE_CONFIG is set, that file. kNotFound / kInvalidArgument with line number.
  static Result<Config> load();
  static Result<Config> parse_file_text(std::string_view text);
  /// TOML 1.0: tables are parts of a setting's name, an array is its values with blanks between them. kInvalidArgument
  /// with line and column: it is no TOML, or has a value that no setting takes.
  static Result<Config> parse_toml(std::string_view text);
  /// Reads the file anew; what set() set stays. Errors as load(), and nothing is changed then.
  Status reload();
  /// Reads the file that NESSIE_CONFIG names, unless there are a file's settings already. Errors as load().
  Status complete() { return file_.empty() ? reload() : Status(); }
  void set(GivenSetting setting);
  void set(std::string_view key, std::string value) { set({std::string(key), std::move(value)}); }

  std::optional<std::string> get(std::string_view key) const;
  std::string get_or(std::string_view key, std::string_view fallback) const;
  /// Where get() finds it, for people: "NESSIE_NNTI_SPIN_US", "/etc/nessie.conf, line 3", "a flag"; empty: nowhere.
  std::string source_of(std::string_view key) const;
  /// kInvalidArgument: what the setting is, where that comes from, and what is `expected` instead, as "a whole number".
  Error bad_value(std::string_view key, std::string_view expected) const;
  /// 1/0, true/false, yes/no, on/off. kInvalidArgument otherwise.
  Result<bool> get_bool(std::string_view key, bool fallback) const;
  Result<std::int64_t> get_int(std::string_view key, std::int64_t fallback) const;
  /// How many: "4096". kInvalidArgument otherwise, and below 0.
  Result<std::uint64_t> get_count(std::string_view key, std::uint64_t fallback) const;
  /// "4096", "64K", "512MiB", "2G" (powers of 1024).
  Result<std::uint64_t> get_size(std::string_view key, std::uint64_t fallback) const;
  /// "30", "30s", "500ms", "2min"; a bare number is in seconds. What is longer than 100 years is these.
  Result<std::chrono::milliseconds> get_duration(std::string_view key, std::chrono::milliseconds fallback) const;

 private:
  struct Line {
    std::string value;
    std::size_t number = 0;
  };
  void warn_of_misspelt() const;

  std::unordered_map<std::string, GivenSetting> flags_;
  std::unordered_map<std::string, Line> file_;
  std::string path_;  ///< of the file; empty: there is none, or only its text
};

Result<std::uint64_t> parse_size(std::string_view text);
/// The parts of a list that are not empty. Any of the separators ends a part.
std::vector<std::string> split(std::string_view list, std::string_view separators);
/// "1.5 GiB", "512 B".
std::string format_size(std::uint64_t size_bytes);

}  // namespace nessie

// SPDX-License-Identifier: BSD-3-Clause
// Many settings at once.
#pragma once

#include <base/config.hpp>

#include <fmt/format.h>

#include <limits>

namespace nessie {

/// Each setting replaces the value that is there; the first that cannot be read ends it.
class ConfigReader {
 public:
  explicit ConfigReader(const Config &config) : config_(config) {}
  void duration(const char *key, std::chrono::milliseconds &value) { take(config_.get_duration(key, value), value); }
  void flag(const char *key, bool &value) { take(config_.get_bool(key, value), value); }
  template <class Number> void count(const char *key, Number &value) {
    count(key, value, 0, static_cast<std::uint64_t>(std::numeric_limits<Number>::max()));
  }
  template <class Number> void count(const char *key, Number &value, std::uint64_t least, std::uint64_t most) {
    auto read = config_.get_count(key, value);
    if (read.ok() && (*read < least || *read > most))
      read = config_.bad_value(key, fmt::format("{} to {}", least, most));
    take(read, value);
  }
  template <class Number> void size(const char *key, Number &value) { take(config_.get_size(key, value), value); }
  /// One that is read in another way.
  template <class Read, class Value> void take(const Result<Read> &read, Value &value) {
    if (!status_.ok()) return;
    if (read.ok())
      value = static_cast<Value>(*read);
    else
      status_ = read.error();
  }
  const Status &status() const { return status_; }

 private:
  const Config &config_;
  Status status_;
};

}  // namespace nessie

// SPDX-License-Identifier: BSD-3-Clause
// Logging: one line to stderr, "nessie[pid] warning: …". Only the function that first decides on an error logs it.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <utility>

namespace nessie::log {

enum class Level { kError = 0, kWarning = 1, kInfo = 2, kDebug = 3 };

/// The threshold: NESSIE_LOG=error|warning|info|debug; warning by default.
Level level();
void set_level(Level level);
/// A name put in front of every line instead of "nessie", e.g. "nessied.0".
void set_program(std::string name);
/// Where lines go instead of stderr; -1: nowhere.
void set_descriptor(int fd);
/// Writes one line, what is not printable escaped, with one write(2), so that lines of several processes do not mix.
void write(Level level, std::string_view text);

template <class... Args> void error(fmt::format_string<Args...> format, Args &&...args) {
  write(Level::kError, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args> void warning(fmt::format_string<Args...> format, Args &&...args) {
  if (level() >= Level::kWarning) write(Level::kWarning, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args> void info(fmt::format_string<Args...> format, Args &&...args) {
  if (level() >= Level::kInfo) write(Level::kInfo, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args> void debug(fmt::format_string<Args...> format, Args &&...args) {
  if (level() >= Level::kDebug) write(Level::kDebug, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace nessie::log

// SPDX-License-Identifier: BSD-3-Clause
#include "base/config.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>

namespace nessie {
namespace {

constexpr std::string_view kUnits = "KMGTPE";

Error no_size(std::string_view text) {
  return {Code::kInvalidArgument,
          fmt::format("'{}' is no size; write it as 4096, 64K, 512MiB or 2G", text.substr(0, 40))};
}

/// The power of 1024 that "", "B", "K", "KB", "KiB", … stand for; -1 if it is no unit.
int unit_power(std::string_view unit) {
  if (unit.empty() || unit == "B" || unit == "b") return 0;
  auto position = kUnits.find(static_cast<char>(std::toupper(static_cast<unsigned char>(unit.front()))));
  auto rest = unit.substr(1);
  bool known = rest.empty() || rest == "B" || rest == "b" || rest == "iB" || rest == "ib" || rest == "i";
  return position == std::string_view::npos || !known ? -1 : static_cast<int>(position) + 1;
}

}  // namespace

Result<std::uint64_t> parse_size(std::string_view text) {
  std::uint64_t number = 0;
  auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc{}) return no_size(text);
  auto unit = text.substr(static_cast<std::size_t>(end - text.data()));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  int power = unit_power(unit);
  if (power < 0 || number > std::numeric_limits<std::uint64_t>::max() >> (10 * power)) return no_size(text);
  return number << (10 * power);
}

std::string format_size(std::uint64_t size_bytes) {
  if (size_bytes < 1024) return fmt::format("{} B", size_bytes);
  std::size_t unit = 0;
  auto scaled = static_cast<double>(size_bytes) / 1024;
  for (; scaled >= 1024 && unit + 1 < kUnits.size(); ++unit) scaled /= 1024;
  auto rounded = std::round(scaled * 10) / 10;
  if (rounded == std::floor(rounded)) return fmt::format("{:.0f} {}iB", rounded, kUnits[unit]);
  return fmt::format("{:.1f} {}iB", rounded, kUnits[unit]);
}

}  // namespace nessie

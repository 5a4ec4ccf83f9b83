// SPDX-License-Identifier: BSD-3-Clause
#include "slurm_diff.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace nessie::cli {

namespace {

constexpr std::size_t kContext = 3;

/// Each with its line end, which the last one may lack.
std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const auto length = end == std::string_view::npos ? text.size() : end + 1;
    lines.push_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return lines;
}

void add_line(char sign, std::string_view line, std::string &diff) {
  diff += sign;
  diff += line;
  if (!line.ends_with('\n')) diff += "\n\\ No newline at end of file\n";
}

/// The lines [first, last), of which some differ.
std::string hunk(const std::vector<std::string_view> &before, const std::vector<std::string_view> &after,
                 std::size_t first, std::size_t last) {
  auto text = fmt::format("@@ -{0},{1} +{0},{1} @@\n", first + 1, last - first);
  for (auto i = first; i < last;) {
    if (before[i] == after[i]) {
      add_line(' ', before[i++], text);
      continue;
    }
    auto end = i;
    while (end < last && before[end] != after[end]) ++end;
    for (auto j = i; j < end; ++j) add_line('-', before[j], text);
    for (auto j = i; j < end; ++j) add_line('+', after[j], text);
    i = end;
  }
  return text;
}

}  // namespace

std::string unified_diff(std::string_view before, std::string_view after, const std::string &name_before,
                         const std::string &name_after) {
  const auto old_lines = lines_of(before), new_lines = lines_of(after);
  std::string diff;
  for (std::size_t i = 0; i < old_lines.size(); ++i) {
    if (old_lines[i] == new_lines[i]) continue;
    const auto first = i - std::min(i, kContext);
    auto last = std::min(old_lines.size(), i + kContext + 1);  // behind the context of the last line that differs
    for (auto j = i + 1; j < old_lines.size() && j < last + kContext; ++j)
      if (old_lines[j] != new_lines[j]) last = std::min(old_lines.size(), j + kContext + 1);
    diff += hunk(old_lines, new_lines, first, last);
    i = last - 1;
  }
  return diff.empty() ? diff : fmt::format("--- {}\n+++ {}\n{}", name_before, name_after, diff);
}

}  // namespace nessie::cli

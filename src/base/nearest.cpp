// SPDX-License-Identifier: BSD-3-Clause
#include "base/nearest.hpp"

#include <algorithm>
#include <numeric>

namespace nessie {

/// The optimal string alignment distance: row i holds the distances between a's first i letters and b's beginnings.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last, last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    before_last = last;
    last = row;
  }
  return last[b.size()];
}

std::string nearest_of(std::string_view word, const std::vector<std::string> &words) {
  constexpr std::size_t kMostLetters = 200;
  if (word.size() > kMostLetters) return {};
  std::string nearest;
  auto least = std::min<std::size_t>(2, word.size() / 3) + 1;
  for (const auto &each : words)
    if (const auto distance = edit_distance(word, each); distance < least) {
      least = distance;
      nearest = each;
    }
  return nearest;
}

}  // namespace nessie

// SPDX-License-Identifier: BSD-3-Clause
#include "outer_run.hpp"

#include <services/staging/board.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>

namespace nessie::cli {

int link_outer_boards(const std::string &boards, int first, const std::string &folder) {
  int count = 0;
  const auto *end = boards.data() + boards.size();
  const auto [rest, error] = std::from_chars(boards.data(), end, count);
  if (error != std::errc() || rest == end || *rest != ' ') return 0;
  const std::string outer(rest + 1, end);
  count = std::clamp(count, 0, NESSIE_MOST_SERVERS - first);
  for (int i = 0; i < count; ++i) {
    for (const char *suffix : {"", NESSIE_BOARD_COUNTS_SUFFIX}) {
      std::error_code ignored;  // what cannot be linked is not looked at
      std::filesystem::create_symlink(fmt::format("{}/board.{}{}", outer, i, suffix),
                                      fmt::format("{}/board.{}{}", folder, first + i, suffix), ignored);
    }
  }
  return count;
}

}  // namespace nessie::cli

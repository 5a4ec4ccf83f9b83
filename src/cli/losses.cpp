// SPDX-License-Identifier: BSD-3-Clause
#include "losses.hpp"

#include <services/staging/board.h>
#include <base/file.hpp>
#include <services/staging/server/ledger.hpp>

#include <fmt/format.h>

#include <cstring>
#include <iterator>

namespace nessie::cli {

Status note_losses(const std::string &run_directory, int index, std::vector<staging::FileReport> &losses) {
  auto ledger = staging::read_ledger(fmt::format("{}/server.{}.ledger", run_directory, index));
  if (!ledger) return ledger.error();
  losses.insert(losses.end(), std::make_move_iterator(ledger->begin()), std::make_move_iterator(ledger->end()));
  return {};
}

LastTraces read_board(const std::string &board_directory, int index) {
  const auto bytes = read_file(fmt::format("{}/board.{}", board_directory, index));
  nessie_board board{};
  if (!bytes.ok() || bytes->size() != sizeof board) return {};
  std::memcpy(&board, bytes->data(), sizeof board);
  if (board.magic != NESSIE_BOARD_MAGIC) return {};
  return {board.used > 0 || board.overflow > 0, board.natives};
}

}  // namespace nessie::cli

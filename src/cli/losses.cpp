// SPDX-License-Identifier: BSD-3-Clause
#include "losses.hpp"

#include <services/staging/board.h>
#include <base/file.hpp>
#include <services/staging/server/ledger.hpp>

#include <fmt/format.h>

#include <cstring>

namespace nessie::cli {

Losses read_losses(const std::string &run_directory, int index) {
  return staging::read_ledger(fmt::format("{}/server.{}.ledger", run_directory, index));
}

Remains read_remains(const std::string &run_directory, const std::string &board_directory, int index) {
  Remains remains{read_losses(run_directory, index)};
  const auto bytes = read_file(fmt::format("{}/board.{}", board_directory, index));
  nessie_board board{};
  if (!bytes.ok() || bytes->size() != sizeof board) return remains;
  std::memcpy(&board, bytes->data(), sizeof board);
  if (board.magic != NESSIE_BOARD_MAGIC) return remains;
  remains.had_files = board.used > 0 || board.overflow > 0;
  remains.has_kept_files = board.kept > 0;
  remains.natives = board.natives;
  return remains;
}

void add_losses(const Losses &lost, RunRecord &record) {
  if (lost) record.lost.insert(record.lost.end(), lost->begin(), lost->end());
}

void add_broken(std::string what, const Remains &remains, RunRecord &record) {
  add_losses(remains.lost, record);
  if (!remains.lost) what += fmt::format("; what it held is not known: {}", remains.lost.error().message);
  record.broken_servers.push_back(std::move(what));
  record.broken_at_work += remains.had_files ? 1 : 0;
  record.untold_natives += remains.natives;
}

void add_restarted(int index, const Remains &remains, RunRecord &record) {
  if (!remains.lost && remains.had_files)
    return add_broken(fmt::format("staging server {} died, and was started again", index), remains, record);
  add_losses(remains.lost, record);
  record.untold_natives += remains.natives;
}

}  // namespace nessie::cli

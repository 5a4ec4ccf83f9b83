// SPDX-License-Identifier: BSD-3-Clause
#include "losses.hpp"

#include <services/staging/board.h>
#include <base/file.hpp>
#include <services/staging/server/ledger.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>

namespace nessie::cli {

Losses read_losses(const std::string &run_directory, int index) {
  return staging::read_ledger(fmt::format("{}/server.{}.ledger", run_directory, index));
}

namespace {

/// Null: it cannot be read, or is of another version.
template <class T> std::unique_ptr<T> read_whole(const std::string &path) {
  const auto bytes = read_file(path);
  if (!bytes.ok() || bytes->size() != sizeof(T)) return nullptr;
  auto whole = std::make_unique<T>();
  std::memcpy(whole.get(), bytes->data(), sizeof(T));
  return whole;
}

/// Whether a file is on the board that has not gone on natively since.
bool lists_files(const nessie_board &board, const nessie_board_writes &writes) {
  const auto places = std::span(board.places).first(std::min<std::size_t>(board.used, NESSIE_BOARD_PLACES));
  return board.overflow > 0 || std::ranges::any_of(places, [&](const nessie_board_place &place) {
           const auto word = writes.survivors[nessie_board_word_of(place.device, place.inode)];
           return place.inode != 0 && (word & nessie_board_bit_of(place.device, place.inode)) == 0;
         });
}

}  // namespace

Remains read_remains(const std::string &run_directory, const std::string &board_directory, int index) {
  Remains remains{read_losses(run_directory, index)};
  const auto path = fmt::format("{}/board.{}", board_directory, index);
  const auto board = read_whole<nessie_board>(path);
  const auto writes = read_whole<nessie_board_writes>(path + NESSIE_BOARD_COUNTS_SUFFIX);
  if (!board || !writes || board->magic != NESSIE_BOARD_MAGIC) return remains;
  remains.had_files = board->used > 0 || board->overflow > 0;
  remains.may_lack = board->failed > 0 || lists_files(*board, *writes);
  remains.has_kept_files = board->kept > 0;
  remains.natives = board->natives;
  return remains;
}

void add_losses(const Losses &lost, RunRecord &record) {
  if (lost) record.lost.insert(record.lost.end(), lost->begin(), lost->end());
}

void add_broken(std::string what, const Remains &remains, RunRecord &record) {
  add_losses(remains.lost, record);
  const bool is_whole = remains.lost && remains.lost->empty() && !remains.may_lack;
  if (!remains.lost) what += fmt::format("; what it held is not known: {}", remains.lost.error().message);
  if (remains.had_files && is_whole) what += "; all that it had is in the files";
  record.broken_servers.push_back(std::move(what));
  record.broken_at_work += remains.had_files ? 1 : 0;
  record.broken_with_files += remains.had_files && !is_whole ? 1 : 0;
  record.untold_natives += remains.natives;
}

void add_restarted(int index, const Remains &remains, RunRecord &record) {
  if (!remains.lost && remains.may_lack)
    return add_broken(fmt::format("staging server {} died, and was started again", index), remains, record);
  add_losses(remains.lost, record);
  record.untold_natives += remains.natives;
}

}  // namespace nessie::cli

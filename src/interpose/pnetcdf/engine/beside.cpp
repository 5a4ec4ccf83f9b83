// SPDX-License-Identifier: BSD-3-Clause
#include <interpose/pnetcdf/engine/beside.hpp>

#include <interpose/pnetcdf/engine/boards.hpp>
#include <interpose/pnetcdf/engine/session.hpp>

#include <base/log.hpp>
#include <services/staging/board.h>

#include <atomic>
#include <span>

namespace interpose {

namespace {

const nessie_boards *all_boards = nullptr;

template <class Word> Word look(const Word &word) {
  return std::atomic_ref(const_cast<Word &>(word)).load(std::memory_order_acquire);
}

bool lists(const nessie_board &board, const staging::FileIdentity &identity) {
  if (look(board.files) == 0) return false;
  if (look(board.overflow) != 0) return true;
  for (const auto &place : std::span(board.places).first(look(board.used)))
    if (look(place.inode) == identity.inode && look(place.device) == identity.device) return true;
  return false;
}

/// Where the boards cannot be seen, any file.
bool may_be_at_servers(const staging::FileIdentity &identity) {
  if (!boards().are_complete()) return true;
  for (int i = 0; i < all_boards->count; ++i)
    if (lists(*all_boards->boards[i], identity)) return true;
  return false;
}

}  // namespace

void see_boards(const nessie_boards *boards) { all_boards = boards; }

void settle_beside(const File &file) {
  if (file.identity.inode == 0 || !Session::get().connected() || !may_be_at_servers(file.identity)) return;
  if (auto settled = Session::get().client()->settle({file.identity, {}}); !settled)
    nessie::log::error("waiting for what was put through other handles: {}", settled.error().to_string());
}

void note_beside(const File &file) { (void)boards().note_write(file.identity); }

}  // namespace interpose

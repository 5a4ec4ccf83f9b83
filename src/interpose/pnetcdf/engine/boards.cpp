// SPDX-License-Identifier: BSD-3-Clause
#include <interpose/pnetcdf/engine/boards.hpp>

#include <interpose/pnetcdf/engine/session.hpp>

#include <atomic>

namespace interpose {

namespace {

std::uint64_t &count_in(nessie_board_writes *writes, const staging::FileIdentity &identity) {
  return writes->counts[nessie_board_count_of(identity.device, identity.inode)];
}

std::uint64_t look(const std::uint64_t &word) {
  return std::atomic_ref(const_cast<std::uint64_t &>(word)).load(std::memory_order_acquire);
}

}  // namespace

bool Boards::are_complete() const {
  if (boards_ == nullptr || boards_->count == 0 || boards_->count < Session::get().servers()) return false;
  for (int i = 0; i < boards_->count; ++i)
    if (boards_->writes[i] == nullptr) return false;
  return true;
}

bool Boards::may_hold(const staging::FileIdentity &identity) const {
  if (!are_complete()) return true;
  for (int i = 0; i < boards_->count; ++i)
    if (nessie_board_lists(boards_->boards[i], identity.device, identity.inode) != 0) return true;
  return false;
}

std::uint64_t Boards::count_of_writes(const staging::FileIdentity &identity) const {
  std::uint64_t sum = 0;
  for (int i = 0; i < boards_->count; ++i)
    sum += look(boards_->boards[i]->natives) + look(count_in(boards_->writes[i], identity));
  return sum;
}

bool Boards::was_opened_to_write(const staging::FileIdentity &identity) const {
  const auto &word = boards_->writes[0]->opened[nessie_board_word_of(identity.device, identity.inode)];
  return (look(word) & nessie_board_bit_of(identity.device, identity.inode)) != 0;
}

bool Boards::note_write(const staging::FileIdentity &identity) const {
  if (!are_complete() || boards_->may_write == 0) return false;
  std::atomic_ref(count_in(boards_->writes[0], identity)).fetch_add(1, std::memory_order_release);
  return true;
}

bool Boards::note_beside(const staging::FileIdentity &identity) const {
  if (!are_complete() || boards_->may_write == 0) return false;
  set_bit(&nessie_board_writes::beside, identity);
  return true;
}

void Boards::note_survivor(const staging::FileIdentity &identity) const {
  if (are_complete() && boards_->may_write != 0) set_bit(&nessie_board_writes::survivors, identity);
}

void Boards::set_bit(std::uint64_t (nessie_board_writes::*set)[NESSIE_BOARD_BITS / 64],
                     const staging::FileIdentity &identity) const {
  const auto bit = nessie_board_bit_of(identity.device, identity.inode);
  for (int i = 0; i < boards_->count; ++i) {
    auto &word = (boards_->writes[i]->*set)[nessie_board_word_of(identity.device, identity.inode)];
    if ((look(word) & bit) == 0) std::atomic_ref(word).fetch_or(bit, std::memory_order_release);
  }
}

Boards &boards() {
  static Boards boards;
  return boards;
}

}  // namespace interpose

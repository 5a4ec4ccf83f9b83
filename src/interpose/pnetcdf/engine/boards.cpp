// SPDX-License-Identifier: BSD-3-Clause
#include <interpose/pnetcdf/engine/boards.hpp>

#include <interpose/pnetcdf/engine/session.hpp>

#include <services/staging/board.h>

#include <atomic>

namespace interpose {

bool Boards::are_complete() const {
  return boards_ != nullptr && boards_->count > 0 && boards_->count == Session::get().servers();
}

std::uint64_t Boards::count_of_writers() const {
  std::uint64_t sum = 0;
  for (int i = 0; i < boards_->count; ++i)
    sum += std::atomic_ref(const_cast<std::uint64_t &>(boards_->boards[i]->entered)).load(std::memory_order_acquire);
  return sum;
}

Boards &boards() {
  static Boards boards;
  return boards;
}

}  // namespace interpose

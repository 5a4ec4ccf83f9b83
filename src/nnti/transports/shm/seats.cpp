// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/shm/seats.hpp"

#include <fmt/core.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

namespace nnti::shm {

Result<std::uint32_t> Seats::take() {
  if (free_.empty()) {
    if (seats_.size() == kSeats)
      return Error{Code::kBusy, fmt::format("an endpoint has at most {} connections over shm; close some", kSeats)};
    seats_.emplace_back();
    free_.push_back(static_cast<std::uint32_t>(seats_.size() - 1));
  }
  auto seat = free_.back();
  free_.pop_back();
  seats_[seat].state = State::kTaken;
  return seat;
}

void Seats::leave(std::uint32_t seat, nessie::Fd socket) {
  ::shutdown(socket.get(), SHUT_WR);
  seats_[seat].connection = nullptr;
  seats_[seat].socket = std::move(socket);
  seats_[seat].state = State::kLeaving;
}

/// What the peer still says is of no interest, nor are its descriptors.
bool Seats::has_gone(std::uint32_t seat) {
  if (seat >= seats_.size() || seats_[seat].state != State::kLeaving) return false;
  std::array<std::byte, 4096> ignored;
  for (;;) {
    auto got = ::recv(seats_[seat].socket.get(), ignored.data(), ignored.size(), MSG_DONTWAIT);
    if (got > 0 || (got < 0 && errno == EINTR)) continue;
    return got == 0 || errno != EAGAIN;
  }
}

void Seats::empty(std::uint32_t seat, std::uint64_t drain_to) {
  seats_[seat].connection = nullptr;
  seats_[seat].socket.reset();
  seats_[seat].drain_to = drain_to;
  seats_[seat].state = State::kGone;
  gone_.push_back(seat);
}

void Seats::settle(std::uint64_t next) {
  if (gone_.empty()) return;
  std::erase_if(gone_, [&](std::uint32_t seat) {
    if (seats_[seat].drain_to > next) return false;
    seats_[seat].state = State::kFree;
    free_.push_back(seat);
    return true;
  });
}

void Seats::forget_queue() {
  for (auto seat : gone_) seats_[seat].drain_to = 0;
}

}  // namespace nnti::shm

// SPDX-License-Identifier: BSD-3-Clause
#include <services/transfer/server/lanes.hpp>

#include <algorithm>
#include <new>

namespace transfer {
namespace {

constexpr std::align_val_t kPage{4096};
/// A piece takes a fraction of that.
constexpr std::chrono::milliseconds kStuck{100};
/// In place of those that are stuck.
constexpr std::size_t kMostTimes = 8;

}  // namespace

Lane::Lane(std::size_t elements) : elements_(elements) {
  for (auto &piece : pieces_) {
    auto *memory = static_cast<data_t *>(::operator new(elements * sizeof(data_t), kPage));
    std::uninitialized_default_construct_n(memory, elements);
    piece.reset(memory);
  }
}

void Lane::Free::operator()(data_t *elements) const { ::operator delete(elements, kPage); }

/// In the fiber that waits.
struct Lanes::Waiter {
  explicit Waiter(nssi::Runtime &runtime) : come(runtime) {}
  nssi::Event come;
  std::unique_ptr<Lane> lane;
};

nessie::Result<Lanes::Lease> Lanes::take(nssi::Runtime &runtime, nssi::Request &request) {
  if (has_room() && waiting_.empty()) return Lease(*this, lend());
  Waiter waiter(runtime);
  waiting_.push_back(&waiter);
  while (!waiter.lane) {
    (void)request.wait(waiter.come, nessie::Deadline::in(kStuck));
    if (waiter.lane) break;
    auto status = request.check();
    if (status.ok() && (waiting_.front() != &waiter || !has_room())) continue;
    std::erase(waiting_, &waiter);
    if (!status.ok()) return status.error();
    waiter.lane = lend();
  }
  return Lease(*this, std::move(waiter.lane));
}

bool Lanes::has_room() const {
  if (lent_.size() < most_) return true;
  if (lent_.size() >= kMostTimes * most_) return false;
  const auto moves_since = std::chrono::steady_clock::now() - kStuck;
  const auto moving = std::ranges::count_if(lent_, [&](const Lane *lane) { return lane->moved_at() >= moves_since; });
  return static_cast<std::size_t>(moving) < most_;
}

std::unique_ptr<Lane> Lanes::lend() {
  std::unique_ptr<Lane> lane;
  if (free_.empty()) {
    lane = std::make_unique<Lane>(elements_);
  } else {
    lane = std::move(free_.back());
    free_.pop_back();
  }
  lent_.push_back(lane.get());
  return lane;
}

void Lanes::give_back(std::unique_ptr<Lane> lane) {
  std::erase(lent_, lane.get());
  if (lent_.size() + free_.size() < most_) free_.push_back(std::move(lane));
  if (waiting_.empty() || !has_room()) return;
  auto *waiter = waiting_.front();
  waiting_.pop_front();
  waiter->lane = lend();
  waiter->come.set();
}

}  // namespace transfer

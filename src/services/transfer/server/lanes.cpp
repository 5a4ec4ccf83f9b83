// SPDX-License-Identifier: BSD-3-Clause
#include <services/transfer/server/lanes.hpp>

#include <algorithm>
#include <new>

namespace transfer {
namespace {

constexpr std::align_val_t kPage{4096};

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

nessie::Result<Lanes::Lease> Lanes::take(nssi::Runtime &runtime, nessie::Deadline deadline) {
  if (!free_.empty()) {
    auto lane = std::move(free_.back());
    free_.pop_back();
    return Lease(*this, std::move(lane));
  }
  if (made_ < most_) {
    auto lane = std::make_unique<Lane>(elements_);
    ++made_;
    return Lease(*this, std::move(lane));
  }
  Waiter waiter(runtime);
  waiting_.push_back(&waiter);
  auto status = waiter.come.wait(deadline);
  std::erase(waiting_, &waiter);
  if (waiter.lane) return Lease(*this, std::move(waiter.lane));
  return status.error();
}

void Lanes::give_back(std::unique_ptr<Lane> lane) {
  if (waiting_.empty()) return free_.push_back(std::move(lane));
  auto *waiter = waiting_.front();
  waiting_.pop_front();
  waiter->lane = std::move(lane);
  waiter->come.set();
}

}  // namespace transfer

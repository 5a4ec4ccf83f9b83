// SPDX-License-Identifier: BSD-3-Clause
// The memory through which arrays pass: lanes of two pieces, each array in one of them, used again and again.
#pragma once

#include <services/transfer/array.hpp>

#include <nssi/nssi.hpp>

#include <array>
#include <deque>
#include <memory>
#include <span>
#include <vector>

namespace transfer {

/// Two pieces, so that one can be worked on while the other is on its way.
class Lane {
 public:
  explicit Lane(std::size_t elements);
  std::span<data_t> piece(std::size_t number) const { return {pieces_[number % 2].get(), elements_}; }

 private:
  struct Free {
    void operator()(data_t *elements) const;
  };
  std::size_t elements_;
  std::array<std::unique_ptr<data_t[], Free>, 2> pieces_;
};

/// On the progress thread.
class Lanes {
 public:
  Lanes(std::size_t elements_of_piece, std::size_t most) : elements_(elements_of_piece), most_(most) {}
  class Lease;
  /// Suspends the fiber until one is free; in order of arrival. kTimedOut; kCancelled: the runtime is being destroyed.
  nessie::Result<Lease> take(nssi::Runtime &runtime, nessie::Deadline deadline);

 private:
  struct Waiter;
  void give_back(std::unique_ptr<Lane> lane);

  const std::size_t elements_, most_;
  std::size_t made_ = 0;
  std::vector<std::unique_ptr<Lane>> free_;
  std::deque<Waiter *> waiting_;
};

/// A lane, until it is dropped.
class Lanes::Lease {
 public:
  Lease(Lease &&) = default;
  ~Lease() {
    if (lane_) lanes_->give_back(std::move(lane_));
  }
  std::span<data_t> piece(std::size_t number) const { return lane_->piece(number); }

 private:
  friend class Lanes;
  Lease(Lanes &lanes, std::unique_ptr<Lane> lane) : lanes_(&lanes), lane_(std::move(lane)) {}
  Lanes *lanes_;
  std::unique_ptr<Lane> lane_;
};

}  // namespace transfer

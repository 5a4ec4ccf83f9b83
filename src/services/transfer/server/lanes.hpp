// SPDX-License-Identifier: BSD-3-Clause
// The memory through which arrays pass: lanes of two pieces, each array in one of them, used again and again. A lane in
// which nothing moves, as its client has been stopped, does not count: another one is made in its place.
#pragma once

#include <services/transfer/array.hpp>

#include <nssi/nssi.hpp>

#include <array>
#include <chrono>
#include <deque>
#include <memory>
#include <span>
#include <vector>

namespace transfer {

/// Two pieces, so that one can be worked on while the other is on its way.
class Lane {
 public:
  explicit Lane(std::size_t elements);
  /// To be asked for before each is moved.
  std::span<data_t> piece(std::size_t number) {
    moved_at_ = std::chrono::steady_clock::now();
    return {pieces_[number % 2].get(), elements_};
  }
  std::chrono::steady_clock::time_point moved_at() const { return moved_at_; }

 private:
  struct Free {
    void operator()(data_t *elements) const;
  };
  std::size_t elements_;
  std::array<std::unique_ptr<data_t[], Free>, 2> pieces_;
  std::chrono::steady_clock::time_point moved_at_{};
};

/// On the progress thread.
class Lanes {
 public:
  Lanes(std::size_t elements_of_piece, std::size_t most) : elements_(elements_of_piece), most_(most) {}
  class Lease;
  /// Suspends the handler's fiber until one is free; in order of arrival. Errors as nssi::Request::check().
  nessie::Result<Lease> take(nssi::Runtime &runtime, nssi::Request &request);

 private:
  struct Waiter;
  bool has_room() const;
  std::unique_ptr<Lane> lend();
  void give_back(std::unique_ptr<Lane> lane);

  const std::size_t elements_, most_;
  std::vector<Lane *> lent_;
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

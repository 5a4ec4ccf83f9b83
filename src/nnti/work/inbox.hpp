// SPDX-License-Identifier: BSD-3-Clause
// Where the messages for one buffer go: each into the element that has been free for longest, so in turn, wrapping
// round. Messages that find no element free are parked and let in, one after the other, in the order of their arrival.
// What is parked waits at its sender; small ones are kept here too, up to a limit, which spares asking for them again.
#pragma once

#include <nnti/nnti.hpp>

#include <deque>
#include <optional>
#include <vector>

namespace nnti {

/// A message on its way in.
struct Arrival {
  PeerId from;
  std::uint64_t operation = 0;  ///< the sender's id of it
  std::uint64_t length = 0;
  bool large = false;  ///< with its sender; `readable` bytes of it can be read from `source`, the rest is written
  bool kept = false;   ///< its bytes are in `bytes`
  std::uint64_t readable = 0;
  std::vector<RemoteBuffer> source = {};
  std::vector<std::byte> bytes = {};
};

class Inbox {
 public:
  static constexpr std::size_t kMaxParked = 65536, kMaxKeptBytes = 256 << 10;

  explicit Inbox(std::size_t elements) : held_(elements, false), free_count_(elements) {}

  /// True if a message may enter now: it is its turn, and an element is free.
  bool open() const { return !entering_ && parked_.empty() && free_count_ > 0; }
  bool park(Arrival arrival, std::span<const std::byte> payload) {
    if (parked_.size() >= kMaxParked) return false;
    if (!arrival.large && kept_bytes_ + payload.size() <= kMaxKeptBytes) {
      arrival.kept = true;
      arrival.bytes.assign(payload.begin(), payload.end());
      kept_bytes_ += payload.size();
    }
    parked_.push_back(std::move(arrival));
    return true;
  }
  /// Lets `arrival` in: element() is kept for it until entered() or gave_up().
  void enter(Arrival arrival) { entering_ = std::move(arrival); }
  /// Lets the first of the parked in, if an element is free and no other is entering.
  bool let_next_in() {
    if (entering_ || parked_.empty() || free_count_ == 0) return false;
    entering_ = std::move(parked_.front());
    parked_.pop_front();
    kept_bytes_ -= entering_->bytes.size();
    return true;
  }
  std::optional<Arrival> &entering() { return entering_; }
  /// The element that the entering message goes to.
  std::uint32_t element() const { return next_fresh_ < held_.size() ? next_fresh_ : returned_.front(); }
  /// The entering message is in element(), which is the reader's now. Returns it.
  std::uint32_t entered() {
    const std::uint32_t index = element();
    if (next_fresh_ < held_.size())
      ++next_fresh_;
    else
      returned_.pop_front();
    held_[index] = true;
    --free_count_;
    entering_.reset();
    return index;
  }
  void gave_up() { entering_.reset(); }
  /// The reader is done with an element. False: it has not got it.
  bool release(std::uint32_t index) {
    if (index >= held_.size() || !held_[index]) return false;
    held_[index] = false;
    ++free_count_;
    returned_.push_back(index);
    return true;
  }
  /// The sender takes a message back. True if it had not been let in, or its bytes are still awaited.
  bool withdraw(PeerId from, std::uint64_t operation) {
    auto matches = [&](const Arrival &arrival) { return arrival.from == from && arrival.operation == operation; };
    if (entering_ && matches(*entering_) && !entering_->large) {
      entering_.reset();
      return true;
    }
    return drop_parked(matches);
  }
  /// Calls refuse(arrival) for every message that waits, and forgets them.
  template <class Refuse> void close(Refuse refuse) {
    if (entering_) refuse(*entering_);
    for (const auto &arrival : parked_) refuse(arrival);
    entering_.reset();
    parked_.clear();
  }
  /// Forgets the parked messages of a peer that is gone, and the one entering unless it is large: that ends by itself.
  void forget(PeerId peer) {
    drop_parked([peer](const Arrival &arrival) { return arrival.from == peer; });
    if (entering_ && entering_->from == peer && !entering_->large) entering_.reset();
  }

 private:
  template <class Matches> bool drop_parked(Matches matches) {
    return std::erase_if(parked_, [&](const Arrival &arrival) {
             if (!matches(arrival)) return false;
             kept_bytes_ -= arrival.bytes.size();
             return true;
           }) > 0;
  }

  std::vector<bool> held_;  ///< holds a message that is not yet released
  std::size_t free_count_;
  std::uint32_t next_fresh_ = 0;        ///< elements from here on were never used
  std::deque<std::uint32_t> returned_;  ///< free again, oldest first; used only once none is fresh
  std::deque<Arrival> parked_;
  std::size_t kept_bytes_ = 0;
  std::optional<Arrival> entering_;
};

}  // namespace nnti

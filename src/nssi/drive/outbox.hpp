// SPDX-License-Identifier: BSD-3-Clause
// Messages for which the transport's queue to their peer had no room. Each peer has its own: one that takes nothing
// holds up nobody else's. Used by the driver.
#pragma once

#include <nssi/nssi.hpp>

#include <cstdint>
#include <deque>
#include <iterator>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace nssi {

class Outbox {
 public:
  bool empty() const { return by_peer_.empty(); }
  /// What is sent to `peer` now goes behind what waits for it here.
  bool holds(PeerId peer) const { return by_peer_.contains(peer.value); }
  void add(PeerId peer, std::span<const std::byte> message) {
    auto &waiting = by_peer_[peer.value];
    waiting.messages.emplace_back(message.begin(), message.end());
    waiting.size_bytes += message.size() + kOverheadBytes;
    if (waiting.size_bytes > kMostBytes) overfull_.push_back(peer);
  }
  void forget(PeerId peer) { by_peer_.erase(peer.value); }
  /// Sends what can be sent, in each peer's order, to those of whom `has_room` says so; `send` is false when one has to
  /// wait again.
  template <class HasRoom, class Send> void flush(HasRoom has_room, Send send) {
    for (auto each = by_peer_.begin(); each != by_peer_.end();) {
      const PeerId peer{each->first};
      auto &[messages, size_bytes] = each->second;
      if (has_room(peer))
        while (!messages.empty() && send(peer, messages.front())) {
          size_bytes -= messages.front().size() + kOverheadBytes;
          messages.pop_front();
        }
      each = messages.empty() ? by_peer_.erase(each) : std::next(each);
    }
  }
  /// Those that have taken nothing for so long that their messages would fill the memory. Once.
  std::vector<PeerId> take_overfull() { return std::exchange(overfull_, {}); }

  /// For one peer: a request's answer each, of as many as anybody may have in progress.
  static constexpr std::size_t kMostBytes = std::size_t{128} << 20;

 private:
  static constexpr std::size_t kOverheadBytes = 64;
  struct Waiting {
    std::deque<std::vector<std::byte>> messages;
    std::size_t size_bytes = 0;
  };
  std::unordered_map<std::uint64_t, Waiting> by_peer_;  ///< none is empty
  std::vector<PeerId> overfull_;
};

}  // namespace nssi

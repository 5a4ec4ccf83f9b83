// SPDX-License-Identifier: BSD-3-Clause
// What an endpoint has asked its peers for, until they answer.
#pragma once

#include "nnti/transport/transport.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace nnti {

/// A question or an answer, as it is sent: its fields in host byte order.
template <class T> std::vector<std::byte> bytes_of(const T &value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  return {bytes.begin(), bytes.end()};
}
template <class T> std::optional<T> from_bytes(std::span<const std::byte> message) {
  if (message.size() != sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, message.data(), sizeof value);
  return value;
}

/// `Question`: has the `peer` that was asked, and the `completion` of whoever wants to know.
template <class Question> class Questions {
 public:
  /// Remembers it; returns the id that its answer must carry.
  std::uint64_t add(const Question &question) {
    pending_.emplace(next_, question);
    return next_++;
  }
  std::size_t size() const { return pending_.size(); }
  /// Null: `peer` was not asked this, or has answered.
  const Question *find(PeerId peer, std::uint64_t id) const {
    const auto found = pending_.find(id);
    return found == pending_.end() || found->second.peer != peer ? nullptr : &found->second;
  }
  /// As find(), and forgets it: it is answered.
  std::optional<Question> take(PeerId peer, std::uint64_t id) {
    if (find(peer, id) == nullptr) return std::nullopt;
    return std::move(pending_.extract(id).mapped());
  }
  /// The last one could not be sent after all; completes with the reason.
  void withdraw_last(const Error &reason) {
    auto node = pending_.extract(next_ - 1);
    if (!node.empty()) node.mapped().completion->on_complete(reason);
  }
  /// Completes everything that is asked of `peer`, in the order in which it was.
  void abandon(PeerId peer, const Error &error) {
    std::vector<std::pair<std::uint64_t, Completion *>> ended;
    for (const auto &[id, pending] : pending_)
      if (pending.peer == peer) ended.emplace_back(id, pending.completion);
    std::ranges::sort(ended);
    for (const auto &[id, completion] : ended) pending_.erase(id);
    for (const auto &[id, completion] : ended) completion->on_complete(error);
  }

 private:
  std::unordered_map<std::uint64_t, Question> pending_;
  std::uint64_t next_ = 1;
};

}  // namespace nnti

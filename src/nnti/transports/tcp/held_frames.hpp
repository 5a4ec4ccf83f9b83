// SPDX-License-Identifier: BSD-3-Clause
// Frames that wait to be sent together (coalescing.hpp).
#pragma once

#include "nnti/framed/pusher.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace nnti::tcp {

/// How many of the bytes the socket took. All, if it is broken: that shows when it is read, after what the peer had
/// still to say.
std::size_t send_bytes(int socket, std::span<const std::byte> first, std::span<const std::byte> second = {});

/// Of one stream. Any thread.
class HeldFrames final : public Held {
 public:
  static constexpr std::size_t kMaxBytes = 16 << 10;

  /// `socket` stays open until forget_socket().
  explicit HeldFrames(int socket) : socket_(socket) {}
  HeldFrames(const HeldFrames &) = delete;
  HeldFrames &operator=(const HeldFrames &) = delete;

  bool fits(std::size_t size_bytes) const;
  /// True: a Pusher is to watch it from now on.
  bool add(std::span<const std::byte> first, std::span<const std::byte> second);
  /// Sends them. Returns what the socket did not take.
  std::vector<std::byte> send();
  void forget_socket();

 private:
  bool anything_waits() const override { return begin_ != end_; }
  void push() override;
  void rest() override;

  int socket_;
  std::unique_ptr<std::byte[]> bytes_;  ///< only while it is watched
  std::size_t begin_ = 0, end_ = 0;
};

}  // namespace nnti::tcp

// SPDX-License-Identifier: BSD-3-Clause
// Frames that wait to be sent together (coalescing.hpp), and the thread that sends them if nobody polls.
//
// Whoever sends a request, and then computes for a second, must not have it wait: after a millisecond, two at most, the
// thread sends it. The thread sleeps while nothing waits anywhere, and looks every millisecond while something does.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include <sys/types.h>

namespace nnti::stream {

/// How many of the bytes the socket took. All, if it is broken: that shows when it is read, after what the peer had
/// still to say.
std::size_t send_bytes(int socket, std::span<const std::byte> first, std::span<const std::byte> second = {});

/// Of one lane. Any thread.
class HeldFrames {
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
  friend class Pusher;
  bool push_if_old();

  mutable std::mutex mutex_;
  int socket_;
  std::unique_ptr<std::byte[]> bytes_;  ///< only while it is watched
  std::size_t begin_ = 0, end_ = 0;
  bool watched_ = false;
  bool seen_ = false;        ///< they waited already when the Pusher looked last
  unsigned idle_looks_ = 0;  ///< of the Pusher's, that found nothing
};

class Pusher {
 public:
  Pusher() = default;
  Pusher(const Pusher &) = delete;
  Pusher &operator=(const Pusher &) = delete;
  ~Pusher();

  /// Until nothing has waited in it for a while. False: there can be no thread; nothing must wait.
  bool watch(std::shared_ptr<HeldFrames> held);

 private:
  bool start();
  void run();

  std::mutex mutex_;
  std::condition_variable something_;
  std::vector<std::shared_ptr<HeldFrames>> watched_;
  bool stop_ = false;
  std::thread thread_;
  pid_t process_ = 0;  ///< that has the thread: a child of fork has not
};

}  // namespace nnti::stream

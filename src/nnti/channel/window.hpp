// SPDX-License-Identifier: BSD-3-Clause
// What a session remembers of messages: those that were sent and not acknowledged, those that came too early, and how
// long an acknowledgement takes.
#pragma once

#include "nnti/channel/settings.hpp"

#include <map>
#include <vector>

namespace nnti::channel {

using Buffer = std::vector<std::byte>;

/// Buffers of messages, to be used again: no allocation for each message.
class BufferPool {
 public:
  /// Empty, but with memory.
  Buffer take() {
    if (free_.empty()) return {};
    auto buffer = std::move(free_.back());
    free_.pop_back();
    buffer.clear();
    return buffer;
  }
  void give_back(Buffer buffer) {
    if (free_.size() < kMostKept) free_.push_back(std::move(buffer));
  }

 private:
  static constexpr std::size_t kMostKept = 1024;
  std::vector<Buffer> free_;
};

/// The messages that were sent and may have to be sent again.
class SendWindow {
 public:
  struct Kept {
    Buffer bytes;  ///< with the header
    Time sent{};
    bool again = false;    ///< sent more than once: its acknowledgement tells nothing of the time it took
    bool arrived = false;  ///< out of order
  };

  explicit SendWindow(BufferPool &pool) : pool_(pool), ring_(kFirstSize) {}
  void limit(const Limits &limits) { limits_ = limits; }
  /// One message is always taken, however large.
  bool has_room(std::size_t size_bytes) const {
    return size() < limits_.messages && (size() == 0 || bytes_ + size_bytes <= limits_.bytes);
  }
  std::uint64_t first() const { return first_; }
  std::uint64_t next() const { return next_; }
  std::size_t size() const { return static_cast<std::size_t>(next_ - first_); }
  bool empty() const { return first_ == next_; }
  Kept &operator[](std::uint64_t number) { return ring_[number & (ring_.size() - 1)]; }

  Kept &push(Buffer bytes);
  /// Forgets all messages before `number`, which is at most next().
  void acknowledge(std::uint64_t number);

 private:
  static constexpr std::size_t kFirstSize = 16;
  void grow();

  BufferPool &pool_;
  Limits limits_;
  std::vector<Kept> ring_;  ///< a power of two; a message's place is its number modulo the size
  std::uint64_t first_ = 0, next_ = 0;
  std::size_t bytes_ = 0;
};

/// Messages that wait for one before them.
class EarlyMessages {
 public:
  struct Early {
    std::uint8_t type = 0;
    Buffer payload;
  };
  /// Does nothing if it is there already. False: there is no room; it must be sent again.
  bool add(std::uint64_t number, std::uint8_t type, std::span<const std::byte> payload, const Limits &limits);
  /// Takes out message `number`, if it is there.
  std::optional<Early> take(std::uint64_t number);
  bool empty() const { return messages_.empty(); }
  bool has(std::uint64_t number) const { return messages_.contains(number); }
  /// Bit i of byte i/8 (the lowest first): whether `expected` + 1 + i is there. `expected` itself is not.
  Buffer bitmap(std::uint64_t expected) const;

 private:
  std::map<std::uint64_t, Early> messages_;
  std::size_t bytes_ = 0;
};

/// How long to wait for an acknowledgement; after RFC 6298.
class RoundTrip {
 public:
  void sample(Duration took);
  Duration timeout() const;
  Duration smoothed() const { return smoothed_; }
  void back_off() {
    if (timeout() < kLongest) ++doublings_;
  }
  void reset_back_off() { doublings_ = 0; }

 private:
  static constexpr Duration kFirst = std::chrono::milliseconds(100), kShortest = std::chrono::milliseconds(5),
                            kLongest = std::chrono::seconds(1);
  Duration smoothed_{0}, variation_{0};
  unsigned doublings_ = 0;
};

}  // namespace nnti::channel

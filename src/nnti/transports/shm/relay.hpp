// SPDX-License-Identifier: BSD-3-Clause
// Puts and gets where the kernel forbids cross-memory attach: by messages. The initiator asks; the owner, in its
// progress, copies between its memory and the initiator's bounce buffer; one piece after the other. Slower, and only
// as prompt as the owner's progress; otherwise the same.
#pragma once

#include "nnti/transport.hpp"
#include "nnti/transports/shm/ring.hpp"

#include <deque>

namespace nnti::shm {

/// A put or get. Exactly one of `destination` and `source` is used.
struct Operation {
  RemoteBuffer remote;
  std::uint64_t offset = 0;
  std::size_t size_bytes = 0;
  std::byte *destination = nullptr;
  const std::byte *source = nullptr;
  Completion *completion = nullptr;
  bool is_put() const { return source != nullptr; }
};

/// Where the pieces of the initiator of a connection's puts and gets, ours or the peer's, pass through.
class Bounces {
 public:
  virtual std::byte *mine() = 0;    ///< made at the first call; null: no memory
  virtual std::byte *theirs() = 0;  ///< null: the peer has not shared any

 protected:
  ~Bounces() = default;
};

class Relay {
 public:
  Relay(Bounces &bounces, const EndpointTable &own_table, RingWriter &out)
      : bounces_(bounces), own_table_(own_table), out_(out) {}

  void start(const Operation &operation) { operations_.push_back(operation); }
  bool busy() const { return !operations_.empty() || reply_.has_value(); }
  /// Sends what can be sent. What has no memory to pass through completes with kNoMemory. Returns true if something
  /// was; `broken` is set if the ring's state is impossible.
  bool pump(bool &broken);
  /// A request of the peer, or its answer to ours. False: it makes no sense.
  bool on_message(Kind kind, std::span<const std::byte> message);
  /// Completes everything that is pending.
  void abandon(const Error &error);

 private:
  bool on_request(Kind kind, std::span<const std::byte> message);
  bool on_done(std::span<const std::byte> message);
  bool send_request(bool &broken);
  bool send_reply(bool &broken);

  Bounces &bounces_;
  const EndpointTable &own_table_;
  RingWriter &out_;
  std::deque<Operation> operations_;
  bool asked_ = false;  ///< a piece of the first operation is under way
  std::size_t piece_bytes_ = 0;
  std::optional<Code> reply_;  ///< to the peer's request; waits for credits
};

}  // namespace nnti::shm

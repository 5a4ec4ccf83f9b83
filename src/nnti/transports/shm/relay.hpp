// SPDX-License-Identifier: BSD-3-Clause
// Puts and gets where the kernel forbids cross-memory attach: by messages. The initiator asks; the owner, in its
// progress, copies between its memory and the initiator's bounce buffer; one piece after the other. Slower, and only
// as prompt as the owner's progress; otherwise the same.
#pragma once

#include "nnti/transport/transport.hpp"
#include "nnti/transports/shm/ring.hpp"

#include <list>

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

/// What a relay needs of its connection.
class RelayLink {
 public:
  /// Where the pieces of our own puts and gets pass through; made at the first call; null: no memory.
  virtual std::byte *mine() = 0;
  /// Where the peer's do; null: it has not shared any.
  virtual std::byte *theirs() = 0;
  /// Sends a message to the peer's relay.
  virtual Outcome write(Kind kind, std::span<const std::byte> message) = 0;

 protected:
  ~RelayLink() = default;
};

class Relay {
 public:
  Relay(RelayLink &link, const EndpointTable &own_table) : link_(link), own_table_(own_table) {}

  void start(const Operation &operation) { operations_.push_back(operation); }
  bool busy() const { return !operations_.empty() || reply_.has_value(); }
  /// Sends what can be sent. What has no memory to pass through completes with kNoMemory. Returns true if something
  /// was; `broken` is set if the channel's state is impossible.
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

  RelayLink &link_;
  const EndpointTable &own_table_;
  std::list<Operation> operations_;
  bool asked_ = false;  ///< a piece of the first operation is under way
  std::size_t piece_bytes_ = 0;
  std::optional<Code> reply_;  ///< to the peer's request; waits for credits
};

}  // namespace nnti::shm

// SPDX-License-Identifier: BSD-3-Clause
// What every endpoint answers by itself, without its application: an echo, and memory to try transfers on. `nessie
// info` measures a peer with it.
//
// Design notes. Whoever has the job's credential may ask. What that may cost the peer is bounded: an echo is one
// message for one message, and the memory is made when it is first asked for, kProbeBytes of each kind for each of at
// most kMaxBorrowers peers, and freed when the peer leaves. Nothing of the application's is reached through it.
#pragma once

#include "nnti/transport/questions.hpp"
#include "nnti/transport/transport.hpp"

#include <map>
#include <vector>

namespace nnti {

inline constexpr std::size_t kMaxBorrowers = 8;
inline constexpr std::size_t kMinPingBytes = sizeof(std::uint64_t);

/// The echoes and the memory that an endpoint has asked its peers for.
class PendingProbes {
 public:
  /// The request to send; remembers it until its answer comes.
  std::vector<std::byte> ping(PeerId peer, std::size_t size_bytes, Completion &completion);
  std::vector<std::byte> borrow(PeerId peer, ProbeMemory memory, RemoteBuffer &buffer, Completion &completion);
  std::size_t size() const { return asked_.size(); }
  /// Completes what the answer is about. False: it makes no sense.
  bool on_pong(PeerId peer, std::span<const std::byte> message);
  bool on_lent(PeerId peer, std::span<const std::byte> message);
  /// The request could not be sent after all; completes with the reason.
  void withdraw_last(const Error &reason) { asked_.withdraw_last(reason); }
  /// Completes everything that is asked of `peer`.
  void abandon(PeerId peer, const Error &error) { asked_.abandon(peer, error); }

 private:
  struct Pending {
    PeerId peer;
    std::size_t size_bytes = 0;      ///< of an echo
    RemoteBuffer *buffer = nullptr;  ///< to be filled in; null: an echo
    Completion *completion = nullptr;
  };
  std::vector<std::byte> remember(const Pending &pending, std::size_t request_bytes);
  std::optional<Pending> take(PeerId peer, std::uint64_t id, bool is_echo);

  Questions<Pending> asked_;
};

/// What a request for memory says.
struct BorrowRequest {
  std::uint64_t id = 0;
  ProbeMemory memory = ProbeMemory::kAllocated;
};
/// Empty: the message makes no sense.
std::optional<BorrowRequest> decode_borrow(std::span<const std::byte> message);
std::vector<std::byte> encode_lent(std::uint64_t id, const Result<RemoteBuffer> &lent);

}  // namespace nnti

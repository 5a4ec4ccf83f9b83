// SPDX-License-Identifier: BSD-3-Clause
// Atomic operations on peers' registered buffers.
//
// Design notes. An initiator that maps the buffer carries the operation out itself. Otherwise it asks the owner, by a
// message: messages arrive exactly once, also over links that break and are mended, so the operation is executed
// exactly once, which no replayed one-sided operation could promise.
#pragma once

#include "nnti/transport/questions.hpp"
#include "nnti/transport/transport.hpp"

#include <vector>

namespace nnti {

/// Carries `operation` out on the word at `offset` of `region`, for a peer. kOutOfRange, kRefused as for a put;
/// kInvalidArgument: the word is not aligned to its size. Nothing was changed then.
Result<std::uint64_t> execute_atomic(const MemoryRegion &region, std::uint64_t offset,
                                     const AtomicOperation &operation);

/// The operations that an endpoint has asked its peers for.
class PendingAtomics {
 public:
  /// The request to send for `operation`; remembers it until its answer comes.
  std::vector<std::byte> ask(PeerId peer, const RemoteBuffer &remote, std::uint64_t offset,
                             const AtomicOperation &operation, std::uint64_t &previous, Completion &completion);
  /// How many peers have not answered yet.
  std::size_t size() const { return asked_.size(); }
  /// Completes the operation that `answer` is about. False: it makes no sense.
  bool on_answer(PeerId peer, std::span<const std::byte> answer);
  /// The request could not be sent after all; completes with the reason.
  void withdraw_last(const Error &reason) { asked_.withdraw_last(reason); }
  /// Completes everything that is asked of `peer`.
  void abandon(PeerId peer, const Error &error) { asked_.abandon(peer, error); }

 private:
  struct Pending {
    PeerId peer;
    std::uint64_t *previous;
    Completion *completion;
  };
  Questions<Pending> asked_;
};

/// The owner's side: executes what `request` asks for on a buffer registered with `transport`, and returns the answer;
/// empty: the request makes no sense.
std::vector<std::byte> answer_atomic(const Transport &transport, std::span<const std::byte> request);

}  // namespace nnti

// SPDX-License-Identifier: BSD-3-Clause
// The gets and puts between us and one peer: what we asked for, and what the peer asks of our memory.
//
// Design notes. Long transfers go in chunks, a few in flight at a time, so that neither side's memory, nor the time for
// which a message waits behind them, depends on their length. A chunk that UCX brings whole is copied into place as it
// arrives, after the checks; one that it announces (rendezvous) is received into place. Functions named on_… are called
// by UCX from within its progress: they note what has ended; finish() tells the callers.
#pragma once

#include "nnti/transport/transport.hpp"
#include "nnti/transports/ucx/worker.hpp"

#include <deque>
#include <map>
#include <vector>

namespace nnti::ucx {

class Memory;
class UcxConnection;

class Transfers {
 public:
  explicit Transfers(UcxConnection &connection) : connection_(connection) {}

  /// The name of an operation that goes another way (over the lane).
  std::uint64_t new_operation() { return next_operation_++; }
  /// Ours. The caller sends the frame that asks; a long put needs none.
  std::uint64_t begin_get(std::span<std::byte> local, Completion &completion);
  std::uint64_t begin_put(const RemoteBuffer &remote, std::uint64_t offset, std::span<const std::byte> local,
                          Completion &completion);
  /// The peer answered one of ours. False: the answer makes no sense.
  bool answered(std::uint64_t operation, Code result, std::span<const std::byte> body);
  /// The peer's: sends `bytes` of `memory` in chunks. False: the peer asks for too much.
  bool serve_get(std::uint64_t operation, const Memory &memory, std::span<std::byte> bytes);

  /// As WorkerEvents::on_chunk.
  bool on_chunk(const ChunkHeader &header, const Payload &payload);
  void on_complete(const Work &chunk, ucs_status_t status);

  /// Sends chunks, as many as may be in flight.
  void pump();
  /// Completes, or answers, what has ended.
  void finish();
  /// Begins nothing more that touches `memory`; returns the number of chunks that still do.
  std::size_t stop(const Memory &memory);
  /// The peer's: begins nothing more.
  void stop_theirs();
  /// Ours, to be completed by the caller; no chunk of them is in flight any more, or UCX holds on to it against its
  /// word.
  std::vector<Completion *> take_ours();
  /// Chunks in flight from or to memory of this process.
  std::size_t in_flight() const { return in_flight_; }

 private:
  struct Transfer {
    bool outgoing = false;
    std::span<std::byte> bytes;
    std::uint64_t next = 0;  ///< bytes begun
    std::size_t in_flight = 0;
    bool needs_answer = false;
    bool stopped = false;  ///< begins nothing more; `result` says why
    bool failed = false;   ///< as did the connection, whose end ends this too
    Code result = Code::kOk;
    ChunkHeader header;                ///< of outgoing chunks
    const Memory *memory = nullptr;    ///< the peer's operations
    Completion *completion = nullptr;  ///< ours
    bool over() const { return in_flight == 0 && !failed && (stopped || (next == bytes.size() && !needs_answer)); }
    void stop(Code code) {
      if (!stopped) result = code;
      stopped = true;
    }
  };
  using Map = std::map<std::uint64_t, Transfer>;  ///< by operation
  struct Name {
    bool ours;
    std::uint64_t operation;
  };

  Transfer *find(Name name);
  /// Whether an operation of ours ever had this name.
  bool was_asked(std::uint64_t operation) const { return operation != 0 && operation < next_operation_; }
  Transfer *accept_chunk(const ChunkHeader &header);
  Transfer *accept_first_put(const ChunkHeader &header);
  bool receive(Transfer &transfer, const ChunkHeader &header, const Payload &payload);
  void send_next(Transfer &transfer);
  void fail(Transfer &transfer, const char *what, ucs_status_t status);
  void refuse(const char *why);
  void note_if_over(Name name, const Transfer &transfer);

  UcxConnection &connection_;
  Map ours_, theirs_;
  std::deque<Name> outgoing_;  ///< in the order in which they are sent
  std::vector<Name> ended_;
  std::size_t in_flight_ = 0, sending_ = 0;
  std::uint64_t next_operation_ = 1;
  std::uint64_t last_put_ = 0;  ///< of the peer
};

}  // namespace nnti::ucx

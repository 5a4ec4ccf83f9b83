// SPDX-License-Identifier: BSD-3-Clause
// The gets and puts between us and one peer: ours of the peer's memory, and the peer's of ours.
//
// Design notes. Short ones travel in frames. Long ones go in chunks, a few in flight at a time, so that neither side's
// memory, nor the time for which a message waits behind them, depends on their length; or the peer's network moves them
// by itself, and the peer answers. A chunk is received into place, after its operation was checked. Functions named
// on_… only take note; finish() tells the callers.
#pragma once

#include "nnti/framed/wire.hpp"

#include <deque>
#include <map>
#include <vector>

namespace nnti::framed {

/// The connection that the transfers belong to. Its functions only take note.
class TransfersHost {
 public:
  struct Target {
    Code code = Code::kOk;       ///< kRefused, kOutOfRange
    std::span<std::byte> bytes;  ///< of a buffer of ours
    const void *buffer = nullptr;
  };
  /// Where a put of the peer's goes.
  virtual Target target_of_put(std::uint64_t key, std::uint64_t offset, std::uint64_t length) = 0;
  /// The peer breaks the protocol.
  virtual void on_breach(const char *why) = 0;
  /// Has finish() called from progress().
  virtual void finish_later() = 0;
  /// Has pump() called from progress().
  virtual void pump_transfers_later() = 0;
  /// Answers an operation of the peer's.
  virtual void answer(std::uint64_t operation, Code result) = 0;

  // --- how chunks leave ------------------------------------------------------------------------------------------------
  virtual std::size_t chunk_bytes() const { return kMaxChunkBytes; }
  /// Another chunk may be sent now.
  virtual bool takes_chunk() const { return false; }
  /// kInFlight: `bytes` are borrowed until on_chunk_sent(). kFailed: so does the connection, whose end ends this too.
  enum class Sent { kDone, kInFlight, kFailed };
  virtual Sent send_chunk(const ChunkHeader & /*header*/, std::span<const std::byte> /*bytes*/) {
    return Sent::kFailed;
  }
  /// Takes back what is in flight from `bytes` (`outgoing`), or into them. False: that cannot be; it ends by itself.
  virtual bool recall(std::span<std::byte> /*bytes*/, bool /*outgoing*/) { return false; }

 protected:
  ~TransfersHost() = default;
};

class Transfers {
 public:
  explicit Transfers(TransfersHost &host) : host_(host) {}

  // --- ours ----------------------------------------------------------------------------------------------------------
  /// Each returns the operation's name. The caller sends the frame that asks; a put in chunks needs none.
  std::uint64_t begin_get(std::span<std::byte> local, Completion &completion);
  std::uint64_t begin_put(const RemoteBuffer &remote, std::uint64_t offset, std::span<const std::byte> local,
                          Completion &completion);
  /// The peer moves the bytes by itself.
  std::uint64_t begin_moved(std::span<std::byte> local, Completion &completion);
  /// The peer answered one of ours. False: the answer makes no sense.
  bool answered(std::uint64_t operation, Code result, std::span<const std::byte> body);

  // --- the peer's ------------------------------------------------------------------------------------------------------
  /// Sends what it asks for in chunks. False: it asks for too much at once, or twice for the same.
  bool serve_get(std::uint64_t operation, const TransfersHost::Target &source);

  // --- chunks ----------------------------------------------------------------------------------------------------------
  /// A chunk has begun to arrive. Returns where its bytes go, all of them; empty: they are thrown away.
  std::span<std::byte> on_chunk(const ChunkHeader &header, std::size_t size_bytes);
  /// It is in place; or its connection failed.
  void on_chunk_received(const ChunkHeader &header, bool failed = false);
  void on_chunk_sent(const ChunkHeader &header, bool failed = false);
  /// Sends chunks, as many as may be sent now. True: there are more.
  bool pump();

  /// Completes, or answers, what has ended.
  void finish();
  /// Begins nothing more that touches `buffer`; returns the number of chunks that still do.
  std::size_t leave(const void *buffer);
  /// Begins nothing more.
  void stop_all();
  /// Ours, to be completed by the caller, after stop_all().
  std::vector<Completion *> take_ours();
  /// Chunks in flight from or to memory of this process.
  std::size_t in_flight() const { return in_flight_; }
  bool any_of_ours() const { return !ours_.empty(); }

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
    const void *buffer = nullptr;      ///< the peer's operations
    Completion *completion = nullptr;  ///< ours
    bool over() const { return in_flight == 0 && !failed && (stopped || (next == bytes.size() && !needs_answer)); }
  };
  struct Name {
    bool ours = false;
    std::uint64_t operation = 0;
  };
  using Map = std::map<std::uint64_t, Transfer>;  ///< by operation

  static Name name_of(const ChunkHeader &header, bool sent) {
    return {(header.type == ChunkType::kPut) == sent, header.operation};
  }
  Transfer *find(Name name);
  Transfer &begin(std::span<std::byte> local, Completion &completion);
  /// Whether an operation of ours ever had this name.
  bool was_asked(std::uint64_t operation) const { return operation != 0 && operation < next_operation_; }
  Transfer *accept_chunk(const ChunkHeader &header);
  Transfer *accept_first_put(const ChunkHeader &header);
  void send_next(Name name, Transfer &transfer);
  void end_chunk(Name name, bool failed);
  void stop(Name name, Transfer &transfer, Code code);
  void note_if_over(Name name, const Transfer &transfer);
  void send(Name name);

  TransfersHost &host_;
  Map ours_, theirs_;
  std::deque<Name> outgoing_;  ///< in the order in which they are sent
  std::vector<Name> ended_;
  std::size_t in_flight_ = 0;
  std::uint64_t next_operation_ = 1;
  std::uint64_t last_put_ = 0;  ///< of the peer
};

}  // namespace nnti::framed

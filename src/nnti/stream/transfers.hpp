// SPDX-License-Identifier: BSD-3-Clause
// The gets and puts that go over a lane in chunks: ours of the peer's memory, and the peer's of ours.
//
// Design notes. A chunk is received into place, after its operation was checked. The last chunk of a get is its answer;
// a put's first chunk asks for all of it, and a frame of the transport's answers. What is refused, or stopped because
// its memory goes, is answered by a frame as well. Functions named on_… only take note; finish() tells the callers.
#pragma once

#include "nnti/stream/lane.hpp"
#include "nnti/transport/transport.hpp"

#include <deque>
#include <map>
#include <vector>

namespace nnti::stream {

enum class ChunkType : std::uint32_t { kPut = 1, kGot };

struct ChunkHeader {
  std::uint64_t operation = 0;  ///< the asking side's name for it
  std::uint64_t key = 0;        ///< kPut, with `offset`
  std::uint64_t offset = 0;     ///< of the operation, in the buffer
  std::uint64_t length = 0;     ///< of the operation
  std::uint64_t at = 0;         ///< of the chunk, in the operation
  ChunkType type = ChunkType::kPut;
  std::uint32_t reserved = 0;
};
static_assert(sizeof(ChunkHeader) == 48 && sizeof(ChunkHeader) <= kMaxHeaderBytes);

/// Empty if `header` is none, or does not fit a payload of `size_bytes`.
std::optional<ChunkHeader> decode_chunk(std::span<const std::byte> header, std::size_t size_bytes);

/// The connection that the transfers belong to.
class TransfersHost {
 public:
  struct Target {
    Code code = Code::kOk;       ///< kRefused, kOutOfRange
    std::span<std::byte> bytes;  ///< of a buffer of ours
    const void *buffer = nullptr;
  };
  /// Where a put of the peer's goes.
  virtual Target target_of_put(std::uint64_t key, std::uint64_t offset, std::uint64_t length) = 0;
  /// The peer breaks the protocol. Only takes note.
  virtual void on_breach(const char *why) = 0;
  /// Has finish() called from progress(). Only takes note.
  virtual void finish_later() = 0;
  /// Has pump() called from progress(). Only takes note.
  virtual void pump_later() = 0;
  /// Answers an operation of the peer's.
  virtual void answer(std::uint64_t operation, Code result) = 0;

 protected:
  ~TransfersHost() = default;
};

class Transfers {
 public:
  Transfers(Lane &lane, TransfersHost &host) : lane_(lane), host_(host) {}

  /// Ours. `operation` is not in use. For a get, the caller sends the frame that asks; a put needs none.
  void begin_get(std::uint64_t operation, std::span<std::byte> local, Completion &completion);
  void begin_put(std::uint64_t operation, const RemoteBuffer &remote, std::uint64_t offset,
                 std::span<const std::byte> local, Completion &completion);
  /// The peer answered one of ours. False: there is none of that name, or the answer makes no sense.
  bool answered(std::uint64_t operation, Code result);
  /// The peer's: sends what it asks for. False: it asks for too much at once, or twice for the same.
  bool serve_get(std::uint64_t operation, const TransfersHost::Target &source);

  /// As LaneEvents.
  std::span<std::byte> on_chunk(std::span<const std::byte> bytes, std::size_t size_bytes);
  void on_chunk_end();
  void on_chunk_sent(std::uint64_t id);

  /// Sends chunks, as many as may wait for the socket. True: there are more.
  bool pump();
  /// Completes, or answers, what has ended.
  void finish();
  /// The peer's operations on a buffer that goes are refused; nothing touches it any more.
  void leave(const void *buffer);
  /// Ours, to be completed by the caller; nothing touches their memory any more.
  std::vector<Completion *> take_ours();
  /// Ends the peer's.
  void stop_theirs();
  bool any_of_ours() const { return !ours_.empty(); }

 private:
  struct Transfer {
    bool outgoing = false;
    std::span<std::byte> bytes;
    std::uint64_t next = 0;  ///< bytes begun
    std::size_t in_flight = 0;
    bool needs_answer = false;
    bool stopped = false;  ///< `result` says why
    Code result = Code::kOk;
    ChunkHeader header;                ///< of outgoing chunks
    const void *buffer = nullptr;      ///< the peer's operations
    Completion *completion = nullptr;  ///< ours
    bool over() const { return stopped || (in_flight == 0 && next == bytes.size() && !needs_answer); }
  };
  struct Name {
    bool ours = false;
    std::uint64_t operation = 0;
  };
  static std::uint64_t id_of(Name name) { return name.operation << 1 | (name.ours ? 1 : 0); }

  Transfer *find(Name name);
  void let_go(Transfer &transfer, Code code);
  void stop(Name name, Transfer &transfer, Code code);
  Transfer *accept_chunk(const ChunkHeader &header);
  Transfer *accept_first_put(const ChunkHeader &header);
  void send_next(Name name, Transfer &transfer);
  void note_if_over(Name name, const Transfer &transfer);

  Lane &lane_;
  TransfersHost &host_;
  std::map<std::uint64_t, Transfer> ours_, theirs_;  ///< by operation
  std::deque<Name> outgoing_;                        ///< in the order in which they are sent
  std::vector<Name> ended_;
  Name arriving_;
  std::uint64_t last_put_ = 0;  ///< of the peer
};

}  // namespace nnti::stream

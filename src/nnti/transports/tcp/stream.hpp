// SPDX-License-Identifier: BSD-3-Clause
// A TCP connection that carries frames and chunks. README.md has the bytes.
//
// Design notes. A message costs two system calls, one to send it and one to receive it, and both are made by whoever
// sends and whoever polls: there is no queue, no signal and no set of descriptors between. Where many are under way
// they share them (coalescing.hpp). Bulk is written from where it lies and read to where it belongs; only the beginning
// of a chunk, which came with what was before it, is copied.
#pragma once

#include "base/fd.hpp"
#include "nnti/framed/wire.hpp"
#include "nnti/transports/tcp/coalescing.hpp"
#include "nnti/transports/tcp/held_frames.hpp"

#include <nessie/result.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace nnti::tcp {

using nessie::Code;
using nessie::Error;

using framed::kMaxChunkBytes;
using framed::kMaxFrameBytes;
inline constexpr std::size_t kMaxHeaderBytes = 128;  ///< of a frame or chunk, as they are sent

/// Precedes every frame, and the header of every chunk. In host byte order, as all that follows.
struct Prefix {
  std::uint32_t size_bytes = 0;     ///< of the frame, or of the chunk's header
  std::uint32_t payload_bytes = 0;  ///< of the chunk; 0: a frame
};

/// Told from within Stream's functions. Only takes note: it calls neither the stream nor anybody else.
class StreamEvents {
 public:
  virtual void on_frame(std::span<const std::byte> frame) = 0;
  /// A chunk begins. Returns where its bytes go, all of them; empty: they are thrown away.
  virtual std::span<std::byte> on_chunk(std::span<const std::byte> header, std::size_t size_bytes) = 0;
  /// The chunk that began last, and was not thrown away, is in place.
  virtual void on_chunk_end() = 0;
  /// What a chunk was sent from is not needed any more.
  virtual void on_chunk_sent(std::uint64_t id) = 0;

 protected:
  ~StreamEvents() = default;
};

/// What is read into. A stream has one only while it reads, or half a frame is in it.
class ReadBuffers {
 public:
  static constexpr std::size_t kBytes = 16 << 10;

  std::unique_ptr<std::byte[]> take();
  void give_back(std::unique_ptr<std::byte[]> buffer);

 private:
  std::vector<std::unique_ptr<std::byte[]>> free_;
};

/// What the streams that one thread serves share.
struct StreamCommons {
  Pusher pusher;
  nessie::Clock::time_point busy_at;  ///< as Coalescing says
  ReadBuffers read_buffers;
};

class Stream {
 public:
  /// `socket` is connected and does not block. `commons` outlives the stream.
  Stream(nessie::Fd socket, StreamEvents &events, StreamCommons &commons);
  ~Stream();
  Stream(const Stream &) = delete;
  Stream &operator=(const Stream &) = delete;

  int fd() const { return socket_.get(); }
  /// A frame of `header`, at most kMaxHeaderBytes, and `body`. What the socket does not take is copied, and goes later:
  /// nothing is borrowed. If `may_wait`, it may wait for frames that follow, until flush() finds that it has waited for
  /// long enough; the pusher sends it if nobody does.
  void send_frame(std::span<const std::byte> header, std::span<const std::byte> body, bool may_wait = false);
  /// True: done. False: `bytes` are borrowed until on_chunk_sent(id), or copy_unsent().
  bool send_chunk(std::span<const std::byte> header, std::span<const std::byte> bytes, std::uint64_t id);
  /// Writes what the socket did not take, as far as it takes it now; and frames that wait, if it is time. Returns the
  /// number of bytes of the former.
  std::size_t flush();
  /// Writes the frames that wait.
  void push();
  bool has_unsent() const { return !unsent_.empty() || coalescing_.any_waits(); }
  std::size_t unsent_chunks() const { return unsent_chunks_; }
  /// Everything has reached the peer's kernel.
  bool delivered() const;
  /// What comes next is probably a chunk.
  void expect_chunk() { chunks_come_ = true; }
  /// Reads what there is; stays with a chunk that arrives, for a few microseconds. Returns the number of bytes.
  std::size_t receive();
  /// Borrows `memory` no more: what is still to be sent of it is copied. No on_chunk_sent() follows.
  void copy_unsent(std::span<const std::byte> memory);
  /// Throws away what is still to come of the chunk that is arriving. No on_chunk_end() follows.
  void discard_arriving() { arriving_ = {{}, arriving_.left, false}; }
  /// Ends the connection, borrows nothing any more, and tells nothing.
  void close();
  /// Why nothing more comes. kBadMessage: the peer sent nonsense; kIo: the connection ended or broke.
  const std::optional<Error> &end() const { return end_; }

 private:
  struct Unsent {
    std::vector<std::byte> bytes;        ///< go first
    std::span<const std::byte> payload;  ///< borrowed
    std::uint64_t id = 0;
    bool chunk = false;
  };
  struct Arriving {
    std::span<std::byte> place;  ///< of what is left; empty: it is thrown away
    std::size_t left = 0;
    bool wanted = false;
  };

  std::size_t write(std::span<const std::byte> first, std::span<const std::byte> second);
  void keep(std::span<const std::byte> first, std::span<const std::byte> second);
  void consume(Unsent &unsent, std::size_t sent);
  void fail(int cause);
  std::size_t read_once();
  std::size_t read();
  std::size_t take_payload(std::span<const std::byte> bytes);
  void end_chunk_if_whole();
  bool take_unit();
  void compact();

  nessie::Fd socket_;
  StreamEvents &events_;
  StreamCommons &commons_;
  bool may_hold_ = true;
  Coalescing<> coalescing_;
  Lateness lateness_;
  std::shared_ptr<HeldFrames> held_;  ///< while they are any, unsent_ is empty
  std::deque<Unsent> unsent_;
  std::size_t unsent_chunks_ = 0;
  std::unique_ptr<std::byte[]> buffer_;  ///< null: nothing is in it
  std::size_t begin_ = 0, filled_ = 0;   ///< of the buffer
  Arriving arriving_;
  bool chunks_come_ = false;  ///< the last piece was one, or the caller expects one
  unsigned came_ = 0;         ///< frames, with this receive()
  std::optional<Error> end_;
};

}  // namespace nnti::tcp

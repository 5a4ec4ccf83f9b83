// SPDX-License-Identifier: BSD-3-Clause
// The stream of one connection, and all streams of a transport.
#pragma once

#include "nnti/transport/poller.hpp"
#include "nnti/transports/tcp/stream.hpp"

#include <deque>
#include <vector>

namespace nnti::tcp {

class Streams;

/// The connection. Functions named on_… only take note.
class LinkHost : public StreamEvents {
 public:
  /// The stream ended, or the peer broke its protocol.
  virtual void on_end(const Error &error) = 0;
  /// Sends chunks, as many as may wait for the socket. True: there are more.
  virtual bool pump_chunks() = 0;

 protected:
  ~LinkHost() = default;
};

/// A stream that is read and written together with the others of its transport.
class Link final : private Poller::Handler {
 public:
  /// `streams` and `host` outlive it.
  Link(nessie::Fd socket, Streams &streams, LinkHost &host);
  ~Link();
  Link(const Link &) = delete;
  Link &operator=(const Link &) = delete;

  void send_frame(std::span<const std::byte> header, std::span<const std::byte> body);
  /// As Stream.
  bool send_chunk(std::span<const std::byte> header, std::span<const std::byte> bytes, std::uint64_t id);
  Stream &stream() { return stream_; }
  const Stream &stream() const { return stream_; }
  /// Has what waits, and chunks, sent when the streams are polled next.
  void flush_later();
  /// Ends it.
  void close();

 private:
  friend class Streams;
  void on_fd_ready() override {}  // the transport reads its streams whenever it makes progress

  std::size_t poll();
  bool flush();

  Stream stream_;
  Streams &streams_;
  LinkHost &host_;
  bool waits_for_flush_ = false, watched_for_writing_ = false;
};

/// Whoever sleeps on the poller, after arm(), wakes up when a stream has something; of its writing wait_fd() tells.
class Streams {
 public:
  explicit Streams(Poller &poller);
  /// Readable when a stream takes more, after arm(). Nothing needs to be done about it but progress.
  int wait_fd() const { return epoll_.get(); }
  /// Writes what waits, and reads each stream that has something once. Returns how many times bytes went or came.
  std::size_t poll();
  /// Somebody is about to sleep.
  void arm();

 private:
  friend class Link;
  void add(Link &link);
  void remove(Link &link);
  void watch(Link &link);
  void unwatch(const Link &link);
  void set_watched(bool watched);
  std::size_t flush();

  Poller &poller_;
  bool watched_ = true;    ///< by the poller
  unsigned polls_ = 0;     ///< since somebody slept
  bool slept_on_ = false;  ///< nobody polls: no frame waits for others
  bool many_ = false;      ///< the kernel is asked which streams have something
  nessie::Fd epoll_;       ///< for that; and of streams that are to take more
  StreamCommons commons_;
  std::vector<Link *> links_;
  std::deque<Link *> to_flush_;
};

}  // namespace nnti::tcp

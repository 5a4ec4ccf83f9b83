// SPDX-License-Identifier: BSD-3-Clause
// What a transport's connection holds when it has a lane, and all lanes of a transport.
#pragma once

#include "nnti/stream/lane.hpp"
#include "nnti/stream/transfers.hpp"
#include "nnti/transport/poller.hpp"

#include <deque>
#include <vector>

namespace nnti::stream {

class LaneSet;

/// The transport's connection. Functions named on_… only take note.
class LaneHost {
 public:
  virtual void on_frame(std::span<const std::byte> frame) = 0;
  /// The lane ended, or the peer broke its protocol.
  virtual void on_lane_end(const Error &error) = 0;
  /// Where a put of the peer's goes.
  virtual TransfersHost::Target target_of_put(std::uint64_t key, std::uint64_t offset, std::uint64_t length) = 0;
  /// Answers an operation of the peer's: a put, or one that cannot be carried out.
  virtual void answer_transfer(std::uint64_t operation, Code result) = 0;

 protected:
  ~LaneHost() = default;
};

class LaneConnection final : private LaneEvents, private TransfersHost, private Poller::Handler {
 public:
  /// `set` and `host` outlive it.
  LaneConnection(nessie::Fd socket, LaneSet &set, LaneHost &host);
  ~LaneConnection();

  void send_frame(std::span<const std::byte> header, std::span<const std::byte> body);
  Transfers &transfers() { return transfers_; }
  const Transfers &transfers() const { return transfers_; }
  bool has_unsent() const { return lane_.has_unsent(); }
  /// As Lane.
  bool delivered() const { return lane_.delivered(); }
  /// Ends it; nothing of the peer's operations touches memory any more. Those that the peer was asked for stay, to be
  /// taken by take_ours().
  void close();

 private:
  friend class LaneSet;
  void on_frame(std::span<const std::byte> frame) override { host_.on_frame(frame); }
  std::span<std::byte> on_chunk(std::span<const std::byte> header, std::size_t size_bytes) override {
    return transfers_.on_chunk(header, size_bytes);
  }
  void on_chunk_end() override { transfers_.on_chunk_end(); }
  void on_chunk_sent(std::uint64_t id) override { transfers_.on_chunk_sent(id); }
  Target target_of_put(std::uint64_t key, std::uint64_t offset, std::uint64_t length) override {
    return host_.target_of_put(key, offset, length);
  }
  void on_breach(const char *why) override { host_.on_lane_end({Code::kBadMessage, why, nessie::Scope::kPeer}); }
  void finish_later() override;
  void pump_later() override;
  void answer(std::uint64_t operation, Code result) override { host_.answer_transfer(operation, result); }

  void on_fd_ready() override {}  // the transport reads its lanes whenever it makes progress

  std::size_t poll();
  bool flush();

  Lane lane_;
  LaneSet &set_;
  LaneHost &host_;
  Transfers transfers_;
  bool waits_for_flush_ = false, waits_for_finish_ = false, watched_for_writing_ = false;
};

/// Whoever sleeps on the poller, after arm(), wakes up when a lane has something; of its writing wait_fd() tells.
class LaneSet {
 public:
  explicit LaneSet(Poller &poller);
  /// Readable when a lane takes more, after arm(). Nothing needs to be done about it but progress.
  int wait_fd() const { return epoll_.get(); }
  std::size_t size() const { return lanes_.size(); }
  /// Writes what waits, and reads each lane that has something once. Returns how many times bytes went or came.
  std::size_t poll();
  bool anything_to_finish() const { return !to_finish_.empty(); }
  /// Completes and answers operations. Returns of how many lanes.
  std::size_t finish();
  /// Somebody is about to sleep.
  void arm();

 private:
  friend class LaneConnection;
  void add(LaneConnection &lane);
  void remove(LaneConnection &lane);
  void watch(LaneConnection &lane);
  void unwatch(const LaneConnection &lane);
  void set_watched(bool watched);
  std::size_t flush();

  Poller &poller_;
  bool watched_ = true;    ///< by the poller
  unsigned polls_ = 0;     ///< since somebody slept
  bool slept_on_ = false;  ///< nobody polls: no frame waits for others
  bool many_ = false;      ///< the kernel is asked which lanes have something
  nessie::Fd epoll_;       ///< for that; and of lanes that are to take more
  LaneCommons commons_;
  std::vector<LaneConnection *> lanes_;
  std::deque<LaneConnection *> to_flush_, to_finish_;
};

}  // namespace nnti::stream

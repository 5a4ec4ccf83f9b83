// SPDX-License-Identifier: BSD-3-Clause
// The channel, as its sessions see it.
#pragma once

#include "nnti/channel/window.hpp"
#include "nnti/transport/decorated.hpp"

#include <unordered_map>
#include <vector>

namespace nnti::channel {

class Session;

class Host : public DecoratedTransport {
 public:
  Host(const TransportOptions &options, Reliability reliability, const Settings &settings)
      : events_(options.events), settings_(settings), lossy_(reliability == Reliability::kLossy), time_(options.time) {}

  TransportEvents &events() { return events_; }
  const Settings &settings() const { return settings_; }
  const nessie::TimeSource &time() const { return time_; }
  Time now() const { return time_.now(); }
  bool lossy() const { return lossy_; }
  BufferPool &buffers() { return buffers_; }
  /// What comes over `link` is `session`'s, until unbind().
  void bind(Connection &link, Session &session) {
    if (!links_.contains(link.peer.value)) link.peer = PeerId{next_link_++};
    links_[link.peer.value] = {&link, &session, {}};
  }
  void unbind(Connection &link) { links_.erase(link.peer.value); }
  /// Has the session's attend() called from progress(). `attended`: it is in the list.
  void attend(Session &session, bool &attended) {
    if (!std::exchange(attended, true)) attended_.push_back(&session);
  }
  /// attend() is called without waiting for anything else to happen.
  void hurry() { hurry_ = true; }
  void tick_at(Time when) { next_tick_ = std::min(next_tick_, when); }
  void reap_later() { any_to_reap_ = true; }
  /// Something that progress() is to count.
  void happened() { ++happened_; }
  /// Whether nobody called progress() for a while until now.
  bool was_away() const { return was_away_; }
  /// While one lives, sessions that are over are not reaped: a completion may make progress.
  class NoReaping {
   public:
    explicit NoReaping(Host &host) : depth_(host.depth_) { ++depth_; }
    ~NoReaping() { --depth_; }
    NoReaping(const NoReaping &) = delete;
    NoReaping &operator=(const NoReaping &) = delete;

   private:
    int &depth_;
  };

 protected:
  /// What a link carries; no session: the peer has not said yet which.
  struct Link {
    Connection *connection = nullptr;
    Session *session = nullptr;
    Time since{};
  };

  TransportEvents &events_;
  const Settings settings_;
  const bool lossy_;
  const nessie::TimeSource time_;
  BufferPool buffers_;
  std::unordered_map<std::uint64_t, Link> links_;  ///< by the link's PeerId
  std::uint64_t next_link_ = 1;
  std::vector<Session *> attended_;
  Time next_tick_ = kNever;
  std::size_t happened_ = 0;
  int depth_ = 0;  ///< of calls of progress(), and what else must not reap
  bool hurry_ = false, any_to_reap_ = false, was_away_ = false;
};

}  // namespace nnti::channel

// SPDX-License-Identifier: BSD-3-Clause
// The reliable channel: what makes a transport that breaks or loses into one that does not. The endpoint puts it around
// every transport whose reliability() is not kAlways; name and URL stay the other's. README.md has the protocol.
#pragma once

#include "nnti/channel/session.hpp"

#include <functional>
#include <unordered_map>

namespace nnti::channel {

/// Opens the transport that the channel stands on, with the options it is given.
using Opener = std::function<Result<std::unique_ptr<Transport>>(const TransportOptions &)>;

/// The channel around what `open_inner` opens, which is `reliability`: kUntilBroken or kLossy.
Result<std::unique_ptr<Transport>> open(const TransportOptions &options, Reliability reliability,
                                        const Opener &open_inner);

class ChannelTransport final : public Transport, private TransportEvents {
 public:
  ChannelTransport(const TransportOptions &options, Reliability reliability, const Settings &settings);
  ~ChannelTransport() override;
  Status open_inner(TransportOptions options, const Opener &open);

  std::string_view name() const override { return inner_->name(); }
  std::string url() const override { return inner_->url(); }
  Status can_reach(const nessie::Url &url) const override { return inner_->can_reach(url); }
  Result<std::unique_ptr<Connecting>> connect(const nessie::Url &url, Deadline deadline) override;
  Result<std::unique_ptr<TransportMemory>> register_memory(const MemoryRegion &region) override;
  std::optional<MemoryRegion> find_memory(const RemoteBuffer &buffer) const override {
    return inner_->find_memory(buffer);
  }
  std::size_t progress() override;
  bool ready() override { return hurry_ || inner_->ready(); }
  int wait_fd() const override { return inner_->wait_fd(); }
  bool arm() override { return !hurry_ && inner_->arm(); }
  void disarm(bool fd_ready) override { inner_->disarm(fd_ready); }
  Deadline timer() const override { return inner_->timer().earlier(Deadline::at(next_tick_)); }

  // --- for sessions --------------------------------------------------------------------------------------------------
  Transport &inner() { return *inner_; }
  TransportEvents &events() { return events_; }
  const Settings &settings() const { return settings_; }
  const nessie::TimeSource &time() const { return time_; }
  Time now() const { return time_.now(); }
  bool lossy() const { return lossy_; }
  BufferPool &buffers() { return buffers_; }
  /// What comes over `link` is `session`'s, until unbind().
  void bind(Connection &link, Session &session);
  void unbind(Connection &link) { links_.erase(link.peer.value); }
  /// Has attend() called from progress(), once and as long as it says so.
  void attend(Session &session);
  /// As attend(), without waiting for anything else to happen.
  void hurry() { hurry_ = true; }
  void tick_at(Time when) { next_tick_ = std::min(next_tick_, when); }
  void reap_later() { any_to_reap_ = true; }
  /// Something that progress() is to count.
  void happened() { ++happened_; }
  /// Whether nobody called progress() for a while until now.
  bool was_away() const { return was_away_; }
  /// Null if it is not there, or over.
  Session *find(const SessionId &id);

 private:
  /// What a link carries; no session: the peer has not said yet which.
  struct Link {
    Connection *connection = nullptr;
    Session *session = nullptr;
    Time since{};
  };

  void accepted(Connection &link) override;
  void message(Connection &link, MessageKind kind, std::span<const std::byte> message) override;
  void lost(Connection &link, Loss loss, const Error &error) override;

  void on_first_message(Connection &link, std::span<const std::byte> message);
  void on_opening(Connection &link, const Opening &opening, std::uint64_t acknowledged);
  void answer(Connection &link, Type type, std::span<const std::byte> body = {});
  void turn_away(Connection &link);
  void attend_sessions();
  void look_at_the_clock();
  void drop_silent_links(Time now);
  void reap();
  void linger();

  TransportEvents &events_;
  const Settings settings_;
  const bool lossy_;
  const nessie::TimeSource time_;
  std::unique_ptr<Transport> inner_;
  BufferPool buffers_;
  std::map<SessionId, std::unique_ptr<Session>> sessions_;  ///< shrinks in reap() only
  std::unordered_map<std::uint64_t, Link> links_;           ///< by the link's PeerId
  std::uint64_t next_link_ = 1;
  std::vector<Session *> attended_;
  Time next_tick_ = kNever;
  Time last_look_ = kNever;
  std::size_t happened_ = 0;
  int depth_ = 0;
  bool hurry_ = false, any_to_reap_ = false, was_away_ = false, closing_down_ = false;
};

}  // namespace nnti::channel

// SPDX-License-Identifier: BSD-3-Clause
// The reliable channel: what makes a transport that breaks or loses into one that does not. The endpoint puts it around
// every transport whose reliability() is not kAlways; name and URL stay the other's. README.md has the protocol.
#pragma once

#include "nnti/channel/session.hpp"

namespace nnti::channel {

/// The channel around what `open_inner` opens, which is `reliability`: kUntilBroken or kLossy.
Result<std::unique_ptr<Transport>> open(const TransportOptions &options, Reliability reliability,
                                        const Opener &open_inner);

class ChannelTransport final : public Host, private TransportEvents {
 public:
  using Host::Host;
  ~ChannelTransport() override;
  Status open_inner(TransportOptions options, const Opener &open);

  Result<std::unique_ptr<Connecting>> connect(const nessie::Url &url, Deadline deadline) override;
  Result<std::unique_ptr<TransportMemory>> register_memory(const MemoryRegion &region) override;
  std::size_t progress() override;
  bool ready() override { return hurry_ || inner_->ready(); }
  bool arm() override { return !hurry_ && inner_->arm(); }
  Deadline timer() const override { return inner_->timer().earlier(Deadline::at(next_tick_)); }

 private:
  void accepted(Connection &link) override;
  void message(Connection &link, MessageKind kind, std::span<const std::byte> message) override;
  void lost(Connection &link, Loss loss, const Error &error) override;

  /// Null if it is not there, or over.
  Session *find(const SessionId &id);
  void on_first_message(Connection &link, std::span<const std::byte> message);
  void on_opening(Connection &link, const Opening &opening, std::uint64_t acknowledged);
  void answer(Connection &link, Type type, std::span<const std::byte> body = {});
  void turn_away(Connection &link);
  void attend_sessions();
  void look_at_the_clock();
  void drop_silent_links(Time now);
  void reap();
  void linger();

  std::map<SessionId, std::unique_ptr<Session>> sessions_;  ///< shrinks in reap() only
  Time last_look_ = kNever;
  bool closing_down_ = false;
};

}  // namespace nnti::channel

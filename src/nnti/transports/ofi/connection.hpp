// SPDX-License-Identifier: BSD-3-Clause
// One peer over libfabric: what of its memory, and of ours, the provider reaches.
#pragma once

#include "nnti/framed/connection.hpp"
#include "nnti/transports/ofi/memory.hpp"
#include "nnti/transports/ofi/wire.hpp"

#include <map>

namespace nnti::ofi {

class OfiConnection;

/// What the transport does for its connections.
class Network {
 public:
  virtual Fabric &fabric() = 0;
  /// As many as all peers may need.
  virtual void post_receives() = 0;
  /// Copies a frame to the provider. False: not now; or it broke the connection.
  virtual bool post_frame(OfiConnection &connection, const framed::FrameHeader &header,
                          std::span<const std::byte> body) = 0;
  /// Carries a transfer of the peer's out, which was checked. False: it has too many under way.
  virtual bool serve(OfiConnection &connection, const framed::FrameHeader &request, const Exposed &exposed,
                     Memory &memory) = 0;
  /// Returns when nothing that the connection asked for, and that has left the fabric, touches memory any more.
  virtual void end_served(const OfiConnection &connection) = 0;
  /// Before the peer's connection is closed: ends what is still read from it, where libfabric would not survive that.
  virtual void end_reads(fi_addr_t peer, std::span<const std::byte> name) = 0;

 protected:
  ~Network() = default;
};

class OfiConnection final : public framed::Connection {
 public:
  OfiConnection(framed::Home &home, std::uint64_t token, Network &network)
      : Connection(home, token), network_(network) {}
  ~OfiConnection() override { leave_fabric(Fabric::Removal::kLater); }

  std::string explain() const override;
  std::size_t max_message_bytes() const override { return kMaxPostedMessageBytes; }
  void abort() override;
  std::vector<std::byte> hello() const override;
  Status learn(std::span<const std::byte> hello) override;
  void on_frame(const framed::Frame &frame) override;

  /// Called once a heartbeat: asks for a sign of the frames that were sent, if nothing has come since the last time.
  void watch_frames();
  /// Something should come sooner or later.
  bool expects_frames() const { return active() && (!frames_.all_taken() || transfers_.any_of_ours()); }
  /// A transfer of the peer's has ended.
  void end_served(std::uint64_t operation, Code result);
  /// The peer's, as long as it may be used; FI_ADDR_UNSPEC: it was given up, and libfabric has forgotten it.
  fi_addr_t address() const { return address_; }
  bool reaches_peer() const { return address_ != FI_ADDR_UNSPEC; }
  std::size_t served = 0;  ///< of its operations, those in progress here

 private:
  bool send_frame(const framed::FrameHeader &header, std::span<const std::byte> body) override;
  bool may_lose_frames() const override { return true; }
  void leave(bool at_once) override;
  void start_long(framed::FrameHeader header, const RemoteBuffer &remote, std::span<std::byte> local,
                  Completion &completion) override;
  void serve_long(const framed::Frame &frame, framed::Memory &memory) override;
  bool peer_reaches_us() const override { return !exposed_.empty(); }
  void on_answered(std::uint64_t operation) override { exposed_.erase(operation); }
  void leave_fabric(Fabric::Removal removal);

  Network &network_;
  std::vector<std::byte> name_;  ///< of the peer's endpoint
  fi_addr_t address_ = FI_ADDR_UNSPEC;
  std::map<std::uint64_t, MemoryKey> exposed_;  ///< by operation: what the peer writes into, or reads from
  bool heard_ = false;                          ///< since the last watch_frames()
  unsigned quiet_ = 0, next_probe_ = 1;         ///< heartbeats; probes become rarer: the peer may just be computing
};

}  // namespace nnti::ofi

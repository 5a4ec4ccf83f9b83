// SPDX-License-Identifier: BSD-3-Clause
// One peer: its frames, with credits; what we asked of it; its end.
#pragma once

#include "nnti/bootstrap/bootstrap.hpp"
#include "nnti/stream/lane_connection.hpp"
#include "nnti/transport/transport.hpp"
#include "nnti/transports/ofi/fabric.hpp"
#include "nnti/transports/ofi/wire.hpp"

#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

namespace nnti::ofi {

class Memory;
class OfiTransport;

class OfiConnection final : public Connection, private stream::LaneHost {
 public:
  /// kConnecting: before the handshake is done. kClosing: we close; what was sent is still on its way. kLost, kClosed:
  /// to be reaped.
  enum class State { kConnecting, kOpen, kClosing, kLost, kClosed };

  OfiConnection(OfiTransport &transport, std::uint64_t token) : transport_(transport), token_(token) {}
  ~OfiConnection() override;

  Transport &transport() override;
  std::string explain() const override;
  std::size_t max_message_bytes() const override;
  bool try_send(MessageKind kind, std::span<const std::byte> message) override;
  void get(const RemoteBuffer &remote, std::uint64_t offset, std::span<std::byte> local,
           Completion &completion) override;
  void put(const RemoteBuffer &remote, std::uint64_t offset, std::span<const std::byte> local,
           Completion &completion) override;
  void close() override;
  void abort() override;

  // --- for the transport ---------------------------------------------------------------------------------------------
  /// As stream::Peers has it.
  Result<std::uint64_t> learn(std::span<const std::byte> hello);
  void established(bootstrap::PageSocket socket) { socket_.emplace(std::move(socket)); }
  void accept() { state_ = State::kOpen; }
  Status knock() { return {}; }
  Result<bool> reached() { return true; }
  /// Speaks first.
  void open();
  bool peer_offers_lane() const { return peer_offers_lane_; }
  void on_frame(const Frame &frame);
  /// What the library carries for others goes over a socket of this connection's own from now on.
  void use_lane(nessie::Fd socket);
  /// It was accepted from a peer that asked for one, and has none yet.
  bool may_be_given_lane() const {
    return state_ == State::kOpen && peer_offers_lane_ && !lane_ && next_frame_ == 0 && expected_frame_ == 0;
  }
  /// A get that is to be answered over the lane.
  void serve_over_lane(const Frame &frame, const Memory &memory);
  /// Nothing that goes over the lane touches the buffer any more.
  void leave(const Memory &memory) {
    if (lane_) lane_->transfers().leave(&memory);
  }
  /// The bootstrap's socket has something: only its end is expected.
  void on_socket();
  void on_sent() { --sends_in_flight_; }
  /// Sends what waits, as far as credits and the provider allow. True if nothing waits any more.
  bool pump();
  /// A frame that must go, if need be later. `body` is copied if it must wait.
  void answer(const FrameHeader &header, std::span<const std::byte> body = {});
  /// The provider, or the protocol, failed; lost() follows from progress().
  void break_with(Error error);
  /// Ends all transfers with the peer now, and the connection from progress().
  void sever();
  /// Works off deadlines and what broke; calls the endpoint.
  void settle(bool queue_is_empty);

  State state() const { return state_; }
  bool active() const { return state_ == State::kOpen || state_ == State::kClosing; }
  /// The peer broke the protocol.
  bool breached() const { return broken_ && broken_->code == Code::kBadMessage; }
  /// Lost, but the endpoint does not know yet.
  bool breaking() const { return broken_.has_value() || dies_at_.has_value(); }
  bool reapable() const { return state_ == State::kLost || state_ == State::kClosed; }
  /// Called once a heartbeat: asks for a sign of the frames that were sent, if nothing has come since the last time.
  void watch_frames();
  /// Something should come sooner or later.
  bool expects_frames() const {
    return active() && (credits_ < kCredits || !pending_.empty() || (lane_ && lane_->transfers().any_of_ours()));
  }
  bool said_goodbye() const { return goodbye_posted_ && sends_in_flight_ == 0 && (!lane_ || lane_->delivered()); }
  std::uint64_t token() const { return token_; }
  int socket() const { return socket_ ? socket_->fd() : -1; }
  fi_addr_t address() const { return address_; }
  Deadline timer() const;
  std::size_t served = 0;       ///< of its operations, those in progress here
  bool waits_for_pump = false;  ///< is in the transport's list

 private:
  struct Pending {
    Completion *completion = nullptr;
    std::span<std::byte> local;
    bool get = false;
    MemoryKey exposed;
  };
  struct Waiting {
    FrameHeader header;
    std::span<const std::byte> body;
    std::vector<std::byte> owned;
  };

  void start(bool get, const RemoteBuffer &remote, std::uint64_t offset, std::span<std::byte> local,
             Completion &completion);
  Status expose(Pending &pending, FrameHeader &header);
  bool hand_over(const FrameHeader &header, std::span<const std::byte> body);
  bool post(FrameHeader header, std::span<const std::byte> body);
  void send_or_keep(const FrameHeader &header, std::span<const std::byte> body, bool copy);
  bool count_credits(const FrameHeader &header);
  void handle(const Frame &frame);
  void on_done(const Frame &frame);
  std::vector<Completion *> take_pending();
  bool peer_reaches_us() const;
  void leave_fabric(Fabric::Removal removal);
  /// Ends the bootstrap's socket so that the peer sees a broken link, not the end of a process.
  void reset_socket();
  /// Ends at once, with everything that is in flight.
  void abandon(Code code, std::string_view why, Fabric::Removal removal);
  void lose(Loss loss, const Error &error, Fabric::Removal removal);

  // lane.cpp
  void start_over_lane(FrameHeader header, const RemoteBuffer &remote, std::span<std::byte> local,
                       Completion &completion);
  void on_frame(std::span<const std::byte> frame) override;
  void on_lane_end(const Error &error) override { break_with(error); }
  stream::TransfersHost::Target target_of_put(std::uint64_t key, std::uint64_t offset, std::uint64_t length) override;
  void answer_transfer(std::uint64_t operation, Code result) override;

  OfiTransport &transport_;
  State state_ = State::kConnecting;
  std::uint64_t token_;  ///< in frames to us
  std::uint64_t their_token_ = 0;
  std::vector<std::byte> name_;
  fi_addr_t address_ = FI_ADDR_UNSPEC;
  bool on_fabric_ = false;
  std::optional<bootstrap::PageSocket> socket_;
  bool peer_offers_lane_ = false;
  std::unique_ptr<stream::LaneConnection> lane_;  ///< stays until the end, closed or not

  std::uint32_t credits_ = 0;     ///< frames that we may send
  std::uint32_t owed_ = 0;        ///< credits to be returned
  std::uint32_t uncredited_ = 0;  ///< frames received whose credits were not yet returned
  std::size_t sends_in_flight_ = 0;
  std::uint32_t next_frame_ = 0, expected_frame_ = 0;
  bool heard_ = false;  ///< since the last watch_frames()
  bool answers_probe_ = false;
  unsigned quiet_ = 0, next_probe_ = 1;  ///< heartbeats; probes become rarer: the peer may just be computing
  std::deque<Waiting> waiting_;
  std::unordered_map<std::uint64_t, Pending> pending_;
  std::uint64_t next_operation_ = 1;

  std::optional<Error> broken_;
  std::optional<Deadline> dies_at_;  ///< until then, frames that are still on the way, and the socket's end, are read
  bool socket_ended_ = false;
  Loss loss_ = Loss::kBroken;
  std::optional<Deadline> linger_;
  bool goodbye_ = false, goodbye_posted_ = false;
};

}  // namespace nnti::ofi

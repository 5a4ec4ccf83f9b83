// SPDX-License-Identifier: BSD-3-Clause
// One peer: its frames, with credits; its gets and puts; its end.
#pragma once

#include "nnti/bootstrap/bootstrap.hpp"
#include "nnti/stream/lane_connection.hpp"
#include "nnti/transport/transport.hpp"
#include "nnti/transports/ucx/pool.hpp"
#include "nnti/transports/ucx/transfers.hpp"

#include <deque>
#include <memory>
#include <optional>
#include <vector>

namespace nnti::ucx {

class UcxTransport;

class UcxConnection final : public Connection, private stream::LaneHost {
 public:
  /// kConnecting: before the handshake is done. kClosing: we close; what was sent is still on its way. kLost, kClosed:
  /// to be reaped.
  enum class State { kConnecting, kOpen, kClosing, kLost, kClosed };

  UcxConnection(UcxTransport &transport, std::uint64_t token)
      : transport_(transport), token_(token), transfers_(*this) {}
  ~UcxConnection() override;

  Transport &transport() override;
  std::string explain() const override;
  std::size_t max_message_bytes() const override { return kMaxMessageBytes; }
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
  /// The side that connected knocks: it sends a first frame, upon which the other side connects to it and knocks as
  /// well. Then it opens, and gives the first credits: from now on, what either side sends leaves it at once.
  /// With a lane, nobody knocks.
  Status knock();
  void on_knock(const FrameHeader &header);
  Result<bool> reached();
  void open();
  void accept() { state_ = State::kOpen; }
  /// What UCX carries for others goes over a socket of this connection's own from now on.
  void use_lane(nessie::Fd socket);
  bool peer_offers_lane() const { return hello_.lane; }
  /// It was accepted from a peer that may have one, and has neither a lane nor a link yet.
  bool may_be_given_lane() const { return state_ == State::kOpen && hello_.lane && !lane_ && !link_; }
  /// Nothing that goes over the lane touches the buffer any more.
  void leave(const Memory &memory) {
    if (lane_) lane_->transfers().leave(&memory);
  }
  void on_frame(const Frame &frame);
  /// The bootstrap's socket has something: only its end is expected.
  void on_socket();
  void on_sent(ucs_status_t status);
  /// Sends what waits, as far as credits allow. True if nothing waits any more.
  bool pump();
  /// UCX, or the protocol, failed; lost() follows from progress().
  void break_with(Error error);
  /// Ends all transfers with the peer now, and the connection from progress().
  void sever();
  /// Works off deadlines and what broke; calls the endpoint.
  void settle(bool queue_is_empty);

  State state() const { return state_; }
  bool active() const { return state_ == State::kOpen || state_ == State::kClosing; }
  bool healthy() const { return active() && !broken_ && (link_ != nullptr || lane_ != nullptr); }
  bool reapable() const { return state_ == State::kLost || state_ == State::kClosed; }
  /// What comes in belongs to a connection that works.
  bool takes_chunks() const { return state_ == State::kOpen && !broken_; }
  bool said_goodbye() const {
    return !healthy() || (goodbye_posted_ && sends_in_flight_ == 0 && (!lane_ || lane_->delivered()));
  }
  std::uint64_t token() const { return token_; }
  int socket() const { return socket_ ? socket_->fd() : -1; }
  Deadline timer() const;
  Transfers &transfers() { return transfers_; }
  std::size_t arrived = 0;            ///< frames that wait to be looked at
  bool waits_for_pump = false;        ///< is in the transport's list
  bool transfers_have_ended = false;  ///< likewise

  // --- for the transfers ---------------------------------------------------------------------------------------------
  void answer_done(std::uint64_t operation, Code result, std::span<const std::byte> body = {});
  const Memory *memory_with(std::uint64_t key) const;
  ChunkSlot &new_chunk(Work::Kind kind, const ChunkHeader &header);
  void give_back(ChunkSlot &chunk);
  ucs_status_t send_chunk(ChunkSlot &chunk, std::span<const std::byte> bytes);
  ucs_status_t receive(const Payload &payload, std::span<std::byte> into, ChunkSlot &chunk);
  void pump_later();
  void attend_transfers();

 private:
  struct Waiting {
    FrameHeader header;
    std::span<const std::byte> body;
    std::vector<std::byte> owned;
  };

  /// The peer broke the protocol: nothing of it is looked at any more.
  bool breached() const { return broken_ && broken_->code == Code::kBadMessage; }
  /// Why an operation cannot begin.
  Status check(Rights needed, const RemoteBuffer &remote, std::uint64_t offset, std::size_t size_bytes) const;
  bool hand_over(const FrameHeader &header, std::span<const std::byte> body);
  bool post(FrameHeader header, std::span<const std::byte> body);
  void send_or_keep(const FrameHeader &header, std::span<const std::byte> body, bool copy);
  bool count(const FrameHeader &header);
  void handle(const Frame &frame);
  void serve(const Frame &frame);
  void on_done(const Frame &frame);
  /// Ends at once, with everything that is in flight.
  void abandon(Code code, std::string_view why);
  /// So that the peer does not take the socket's end for the orderly end of a process.
  void reset_socket();
  void lose(Loss loss, const Error &error);

  // lane.cpp
  void on_frame(std::span<const std::byte> frame) override;
  void on_lane_end(const Error &error) override { break_with(error); }
  stream::TransfersHost::Target target_of_put(std::uint64_t key, std::uint64_t offset, std::uint64_t length) override;
  void answer_transfer(std::uint64_t operation, Code result) override;

  UcxTransport &transport_;
  State state_ = State::kConnecting;
  std::uint64_t token_;  ///< in what is sent to us
  Hello hello_;          ///< the peer's
  std::unique_ptr<Link> link_;
  std::unique_ptr<stream::LaneConnection> lane_;  ///< stays until the end, closed or not
  std::optional<bootstrap::PageSocket> socket_;
  Transfers transfers_;

  std::uint32_t credits_ = 0;     ///< frames that we may send
  std::uint32_t owed_ = 0;        ///< credits to be returned
  std::uint32_t uncredited_ = 0;  ///< frames received whose credits were not yet returned
  std::uint32_t next_sent_ = 0, next_received_ = 0;
  std::size_t sends_in_flight_ = 0;
  std::deque<Waiting> waiting_;

  std::optional<Error> broken_;
  std::optional<Deadline> dies_at_;  ///< until then, frames that are still on the way, and the socket's end, are read
  bool peer_knocked_ = false;
  bool socket_ended_ = false;
  Loss loss_ = Loss::kBroken;
  std::optional<Deadline> linger_;
  bool goodbye_ = false, goodbye_posted_ = false;
};

}  // namespace nnti::ucx

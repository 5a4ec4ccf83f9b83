// SPDX-License-Identifier: BSD-3-Clause
// One peer, met through the bootstrap: its frames, its gets and puts, its end. A transport derives from it, and says
// how bytes leave; what arrives it hands over to on_frame() and transfers().
//
// Design notes. The bootstrap's socket stays open, and its end is the peer's death: seen at once even when all is idle,
// and told from a link that breaks. What the network reports is only noted; it is worked off in progress().
#pragma once

#include "nnti/bootstrap/bootstrap.hpp"
#include "nnti/bootstrap/network_address.hpp"
#include "nnti/framed/frames.hpp"
#include "nnti/framed/memory.hpp"
#include "nnti/framed/transfers.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nnti::framed {

class Connection;

/// The transport, as its connections see it.
class Home : public Memories {
 public:
  virtual nnti::Transport &transport() = 0;
  virtual TransportEvents &events() = 0;
  /// Has pump(), settle() and transfers().finish() called from progress().
  virtual void pump_later(Connection &connection) = 0;
  virtual void attend(Connection &connection) = 0;
  virtual void finish_later(Connection &connection) = 0;
  /// Has the endpoint ask its Connectings again.
  virtual void ask_again() = 0;
  /// Lets the network work; calls nobody.
  virtual void work() = 0;
  /// A second conversation of a connection that is being made: the bootstrap again, with another hello.
  virtual Result<bootstrap::Connector> connect_again(const HostPort &address, std::vector<std::byte> hello) = 0;
  /// on_socket() of the connection with that token is called when `fd` has something.
  virtual void watch(int fd, std::uint64_t token, bool also_writing) = 0;
  virtual void unwatch(int fd) = 0;

 protected:
  ~Home() = default;
};

class Connection : public nnti::Connection, protected TransfersHost {
 public:
  /// kConnecting: before the handshake is done. kClosing: we close; what was sent is still on its way. kLost, kClosed:
  /// to be reaped.
  enum class State { kConnecting, kOpen, kClosing, kLost, kClosed };
  static constexpr std::uint32_t kCredits = 16;  ///< frames that a peer may have on the way to us

  /// `token`: in what is sent to us.
  Connection(Home &home, std::uint64_t token) : home_(home), token_(token), transfers_(*this) {}

  nnti::Transport &transport() override { return home_.transport(); }
  std::size_t max_message_bytes() const override { return kMaxMessageBytes; }
  bool try_send(MessageKind kind, std::span<const std::byte> message) override;
  void get(const RemoteBuffer &remote, std::uint64_t offset, std::span<std::byte> local,
           Completion &completion) override;
  void put(const RemoteBuffer &remote, std::uint64_t offset, std::span<const std::byte> local,
           Completion &completion) override;
  void close() override;
  void abort() override;

  // --- how it comes about ----------------------------------------------------------------------------------------------
  /// What our side says of itself.
  virtual std::vector<std::byte> hello() const = 0;
  /// What the peer says of itself: the token that it gave the connection, and more.
  virtual Status learn(std::span<const std::byte> hello) = 0;
  /// The bootstrap is over.
  void established(bootstrap::PageSocket socket) { socket_.emplace(std::move(socket)); }
  /// The side that accepted: it is open.
  void accept() { state_ = State::kOpen; }
  /// The side that connected: asks the peer, at the address of its bootstrap, for what the network needs besides; then
  /// says whether it has that; then it is open, and speaks first.
  virtual Status knock(const HostPort & /*address*/) { return {}; }
  virtual Result<bool> reached() { return true; }
  void open();

  // --- while it lives, from progress() ---------------------------------------------------------------------------------
  virtual void on_frame(const Frame &frame);
  /// The bootstrap's socket has something: only its end is expected.
  void on_socket();
  /// A frame has left.
  void on_sent() { --sends_in_flight_; }
  /// Sends what waits, as far as credits and the network allow. True if nothing waits any more.
  bool pump();
  /// The network, or the protocol, failed; lost() follows from progress().
  void break_with(Error error);
  void break_protocol(const char *why) { break_with({Code::kBadMessage, why, nessie::Scope::kPeer}); }
  /// Ends all transfers with the peer now, and the connection from progress().
  void sever();
  /// Works off deadlines and what broke; calls the endpoint. `queue_is_empty`: nothing more of a peer that has ended is
  /// to come.
  void settle(bool queue_is_empty);

  State state() const { return state_; }
  bool active() const { return state_ == State::kOpen || state_ == State::kClosing; }
  bool healthy() const { return active() && !broken_ && linked(); }
  bool reapable() const { return state_ == State::kLost || state_ == State::kClosed; }
  /// Lost, but the endpoint does not know yet.
  bool breaking() const { return broken_.has_value() || dies_at_.has_value(); }
  bool moves_data() const { return state_ == State::kOpen && !broken_; }
  bool said_goodbye() const { return !healthy() || (goodbye_posted_ && delivered()); }
  std::uint64_t token() const { return token_; }
  int socket() const { return socket_ ? socket_->fd() : -1; }
  Deadline timer() const;
  Transfers &transfers() { return transfers_; }
  std::size_t arrived = 0;                                                     ///< frames that wait to be looked at
  bool waits_for_pump = false, waits_for_finish = false, is_attended = false;  ///< is in the transport's list

 protected:
  // --- what the transport knows ------------------------------------------------------------------------------------------
  /// Frames can be sent; for the side that accepted, perhaps not from the beginning.
  virtual bool linked() const { return true; }
  /// Copies a frame on its way. False: not now, or it broke the connection.
  virtual bool send_frame(const FrameHeader &header, std::span<const std::byte> body) = 0;
  /// All that was sent has left this process for certain, even if it makes no more progress.
  virtual bool has_left() const { return true; }
  /// The peer's network has all that was sent.
  virtual bool delivered() const { return sends_in_flight_ == 0; }
  /// Nothing is sent any more, nothing received. `at_once`: and what is in flight to or from the peer ends.
  virtual void leave(bool at_once) = 0;
  /// The network lost frames without a word, if some are missing; else the peer broke the protocol.
  virtual bool may_lose_frames() const { return false; }
  /// Begins a get or put of more than kMaxInlineBytes, which `header` describes. By default in chunks.
  virtual void start_long(FrameHeader header, const RemoteBuffer &remote, std::span<std::byte> local,
                          Completion &completion);
  /// Carries one of the peer's out, which was checked. By default in chunks; a long put asks for itself.
  virtual void serve_long(const Frame &frame, Memory &memory);
  /// The peer may still reach memory of this process for operations of ours.
  virtual bool peer_reaches_us() const { return false; }
  /// The peer has answered.
  virtual void on_answered(std::uint64_t /*operation*/) {}

  /// Sends a frame that was numbered.
  auto sender() {
    return [this](FrameHeader &header, std::span<const std::byte> body) {
      header.token = their_token_;
      return linked() && send_frame(header, body);
    };
  }
  bool post(const FrameHeader &header, std::span<const std::byte> body) { return frames_.post(header, body, sender()); }
  /// Sends a frame now or later; `body` is copied if it must wait.
  void send_or_keep(const FrameHeader &header, std::span<const std::byte> body);
  void answer_done(std::uint64_t operation, Code result, std::span<const std::byte> body = {});
  bool breached() const { return broken_ && broken_->code == Code::kBadMessage; }
  static Error lost_error(std::string message, int cause = 0) {
    return {Code::kPeerLost, std::move(message), nessie::Scope::kPeer, cause};
  }

  // TransfersHost
  Target target_of_put(std::uint64_t key, std::uint64_t offset, std::uint64_t length) override;
  void on_breach(const char *why) override { break_protocol(why); }
  void finish_later() override { home_.finish_later(*this); }
  void pump_transfers_later() override { home_.pump_later(*this); }
  void answer(std::uint64_t operation, Code result) override;

  Home &home_;
  State state_ = State::kConnecting;
  const std::uint64_t token_;
  std::uint64_t their_token_ = 0;
  std::optional<bootstrap::PageSocket> socket_;
  Frames frames_{kCredits};
  Transfers transfers_;
  std::size_t sends_in_flight_ = 0;
  std::optional<Error> broken_;

 private:
  void start(bool get, const RemoteBuffer &remote, std::uint64_t offset, std::span<std::byte> local,
             Completion &completion);
  void handle(const Frame &frame);
  void serve(const Frame &frame);
  void on_done(const Frame &frame);
  /// Ends at once, with everything that is in flight.
  void abandon(Code code, std::string_view why, bool at_once);
  /// So that the peer does not take the socket's end for the orderly end of a process.
  void reset_socket();
  void lose(Loss loss, const Error &error, bool at_once);

  std::optional<Deadline> dies_at_;  ///< until then, frames that are still on the way, and the socket's end, are read
  bool socket_ended_ = false;
  Loss loss_ = Loss::kBroken;
  std::optional<Deadline> linger_;
  bool goodbye_ = false, goodbye_posted_ = false;
};

}  // namespace nnti::framed

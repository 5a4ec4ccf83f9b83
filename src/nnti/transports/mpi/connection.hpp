// SPDX-License-Identifier: BSD-3-Clause
// One peer: how we got to know it, its frames, with credits, and its end. transfers.hpp has the gets and puts.
#pragma once

#include "nnti/framed/frames.hpp"
#include "nnti/transports/mpi/transfers.hpp"
#include "nnti/transports/mpi/world.hpp"

#include <functional>
#include <map>
#include <optional>
#include <vector>

namespace nnti::mpi {

class MpiConnection;

/// Where a peer's endpoint receives.
struct Address {
  int rank = 0;
  int port = 0;
};

/// The transport, as its connections see it.
class Home : public framed::Memories {
 public:
  virtual Transport &transport() = 0;
  virtual World &world() = 0;
  virtual int port() const = 0;
  virtual TransportEvents &events() = 0;
  virtual const nessie::Credential &credential() const = 0;
  /// Copies a frame to MPI. False: it takes no more, and the connection is broken.
  virtual bool post_frame(MpiConnection &connection, Address to, const FrameHeader &header,
                          std::span<const std::byte> body) = 0;
  virtual bool post_bytes(MpiConnection &connection, Address to, std::span<const std::byte> head,
                          std::span<const std::byte> body) = 0;
  virtual void pump_later(MpiConnection &connection) = 0;
  /// Has settle() called from progress(), until it is closed.
  virtual void attend(MpiConnection &connection) = 0;
  virtual Flow &new_flow(Flow::Direction direction, int rank, int tag, std::span<std::byte> memory) = 0;
  /// Has the flow looked after from progress().
  virtual void touch(Flow &flow) = 0;
  /// Lets MPI work until `state` holds; calls nobody. False: the deadline passed.
  virtual bool poll_until(const std::function<bool()> &state, Deadline deadline) = 0;

 protected:
  ~Home() = default;
};

class MpiConnection final : public Connection, private TransfersHost {
 public:
  /// kKnocking: we sent a Hello. kProving: and our proof. kAnswering: we were knocked at, and sent a challenge.
  /// kEnding: it has failed, or the peer has left; the endpoint is told when MPI touches no lent memory any more.
  /// kClosing: the endpoint has forgotten it; what was sent is still on its way. kClosed: to be reaped.
  enum class State { kKnocking, kProving, kAnswering, kOpen, kEnding, kClosing, kClosed };

  MpiConnection(Home &home, std::uint64_t token, Address address)
      : home_(home), token_(token), address_(address), transfers_(static_cast<TransfersHost &>(*this)) {
    frames_.begin_with_all();
  }

  Transport &transport() override { return home_.transport(); }
  std::string explain() const override;
  std::size_t max_message_bytes() const override { return kMaxMessageBytes; }
  bool try_send(MessageKind kind, std::span<const std::byte> message) override;
  void get(const RemoteBuffer &remote, std::uint64_t offset, std::span<std::byte> local,
           Completion &completion) override;
  void put(const RemoteBuffer &remote, std::uint64_t offset, std::span<const std::byte> local,
           Completion &completion) override;
  void close() override;
  void abort() override;

  // --- for the transport -----------------------------------------------------------------------------------------------
  /// Connecting side: begins. Accepting side: answers `hello`.
  void knock();
  void answer(const Hello &hello);
  /// How the handshake ended; empty: it has not.
  const std::optional<Status> &handshake() const { return handshake_; }
  /// Gives a handshake up.
  void give_up();
  void on_frame(const Frame &frame);
  void on_sending() { ++sends_in_flight_; }
  void on_sent() { --sends_in_flight_; }
  /// Sends what waits, as far as credits allow. True if nothing waits any more.
  bool pump();
  /// Works off deadlines and ends; calls the endpoint.
  void settle();
  /// MPI, or the protocol, failed; TransportEvents::lost() follows from progress().
  void break_with(Error error) override;

  std::uint64_t token() const { return token_; }
  int rank() const { return address_.rank; }
  State state() const { return state_; }
  bool closed() const { return state_ == State::kClosed; }
  bool said_goodbye() const { return closed() || (goodbye_posted_ && sends_in_flight_ == 0); }
  Transfers &transfers() { return transfers_; }
  Deadline timer() const;
  bool waits_for_pump = false, is_attended = false;  ///< is in the transport's list
  bool held = false;                                 ///< by its Connecting

 private:
  // TransfersHost
  World &world() override { return home_.world(); }
  const Memory *memory_of(std::uint64_t key) override { return home_.find(key); }
  Flow &new_flow(Flow::Direction direction, int tag, std::span<std::byte> memory, std::uint64_t operation,
                 bool asked_here) override;
  void touch(Flow &flow) override { home_.touch(flow); }
  void wants_pump() override { home_.pump_later(*this); }
  void send_or_keep(const FrameHeader &header, std::span<const std::byte> body) override;

  auto sender() {
    return [this](FrameHeader &header, std::span<const std::byte> body) {
      header.token = their_token_;
      return home_.post_frame(*this, address_, header, body);
    };
  }
  bool post(const FrameHeader &header, std::span<const std::byte> body) { return frames_.post(header, body, sender()); }
  void start(bool get, const RemoteBuffer &remote, std::uint64_t offset, std::span<std::byte> local,
             Completion &completion);
  void keep_early(const Frame &frame);
  void take(const Frame &frame);
  void handle(const Frame &frame);
  void handle_handshake(const Frame &frame);
  void handle_closing(const Frame &frame);
  void on_challenge(const Frame &frame);
  void on_proof(const Frame &frame);
  void on_refusal(const Frame &frame);
  void end_handshake(Status status);
  void refuse(Code code, std::string_view why);
  void on_bye();
  void begin_to_end(Error why);
  void lose();
  void begin_to_close();
  void end(const std::function<bool()> &free);

  Home &home_;
  State state_ = State::kKnocking;
  std::uint64_t token_;  ///< in frames to us
  std::uint64_t their_token_ = 0;
  Address address_;
  nessie::Nonce nonce_{}, their_nonce_{};
  std::optional<Status> handshake_;

  framed::Frames frames_{kCredits};
  std::map<std::uint32_t, std::vector<std::byte>> early_;  ///< frames that overtook another one
  std::size_t sends_in_flight_ = 0;
  Transfers transfers_;

  std::optional<Error> why_;  ///< kEnding
  std::optional<Deadline> patience_, linger_;
  bool goodbye_ = false, goodbye_posted_ = false, their_goodbye_ = false;
};

}  // namespace nnti::mpi

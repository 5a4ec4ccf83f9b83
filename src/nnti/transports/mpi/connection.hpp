// SPDX-License-Identifier: BSD-3-Clause
// One peer: how we got to know it, its frames, with credits, and its end. transfers.hpp has the gets and puts.
#pragma once

#include "nnti/transport/transport.hpp"
#include "nnti/transports/mpi/transfers.hpp"
#include "nnti/transports/mpi/wire.hpp"

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <vector>

namespace nnti::mpi {

class MpiTransport;
class World;

/// Where a peer's endpoint receives.
struct Address {
  int rank = 0;
  int port = 0;
};

class MpiConnection final : public Connection {
 public:
  /// kKnocking: we sent a Hello. kProving: and our proof. kAnswering: we were knocked at, and sent a challenge.
  /// kEnding: it has failed, or the peer has left; the endpoint is told when MPI touches no lent memory any more.
  /// kClosing: the endpoint has forgotten it; what was sent is still on its way. kClosed: to be reaped.
  enum class State { kKnocking, kProving, kAnswering, kOpen, kEnding, kClosing, kClosed };

  MpiConnection(MpiTransport &transport, std::uint64_t token, Address address)
      : transport_(transport), token_(token), address_(address), transfers_(*this) {}

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
  void break_with(Error error);

  std::uint64_t token() const { return token_; }
  int rank() const { return address_.rank; }
  State state() const { return state_; }
  bool closed() const { return state_ == State::kClosed; }
  bool said_goodbye() const { return closed() || (goodbye_posted_ && sends_in_flight_ == 0); }
  Transfers &transfers() { return transfers_; }
  Deadline timer() const;
  bool waits_for_pump = false, is_attended = false;  ///< is in the transport's list
  bool held = false;                                 ///< by its Connecting

  // --- for its transfers -------------------------------------------------------------------------------------------------
  World &world();
  const Memory *memory_of(std::uint64_t key);
  Flow &new_flow(Flow::Direction direction, int tag, std::span<std::byte> memory, std::uint64_t operation,
                 bool asked_here);
  void touch(Flow &flow);
  void wants_pump();
  /// Sends a frame now or later. `body` is copied if it must wait and `copy` says so; else it stays lent until then.
  void send_or_keep(const FrameHeader &header, std::span<const std::byte> body, bool copy);

 private:
  struct Waiting {
    FrameHeader header;
    std::span<const std::byte> body;
    std::vector<std::byte> owned;
  };

  void start(bool get, const RemoteBuffer &remote, std::uint64_t offset, std::span<std::byte> local,
             Completion &completion);
  bool post(FrameHeader header, std::span<const std::byte> body);
  void keep_early(const Frame &frame);
  void take(const Frame &frame);
  bool count_credits(const FrameHeader &header);
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

  MpiTransport &transport_;
  State state_ = State::kKnocking;
  std::uint64_t token_;  ///< in frames to us
  std::uint64_t their_token_ = 0;
  Address address_;
  nessie::Nonce nonce_{}, their_nonce_{};
  std::optional<Status> handshake_;

  std::uint32_t next_out_ = 0, next_in_ = 0;               ///< sequence numbers
  std::map<std::uint32_t, std::vector<std::byte>> early_;  ///< frames that overtook another one
  std::uint32_t credits_ = kCredits;                       ///< frames that we may send
  std::uint32_t owed_ = 0;                                 ///< credits to be returned
  std::uint32_t uncredited_ = 0;                           ///< frames received whose credits were not yet returned
  std::size_t sends_in_flight_ = 0;
  std::deque<Waiting> waiting_;
  Transfers transfers_;

  std::optional<Error> why_;  ///< kEnding
  std::optional<Deadline> patience_, linger_;
  bool goodbye_ = false, goodbye_posted_ = false, their_goodbye_ = false;
};

}  // namespace nnti::mpi

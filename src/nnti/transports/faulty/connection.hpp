// SPDX-License-Identifier: BSD-3-Clause
// One peer, seen through a network that is not to be trusted.
#pragma once

#include "nnti/transports/faulty/host.hpp"

#include <deque>
#include <list>
#include <vector>

namespace nnti::faulty {

class FaultyConnection final : public Connection {
 public:
  /// kBreaking: nothing goes in or out any more; the peer has been told to let go, too. kEnding: lost() is to be
  /// called.
  enum class State { kOpen, kBreaking, kEnding, kOver };

  FaultyConnection(Host &transport, Connection &inner) : transport_(transport), inner_(&inner) {}

  Transport &transport() override { return transport_; }
  std::string explain() const override;
  std::size_t max_message_bytes() const override { return max_message_bytes_; }
  bool try_send(MessageKind kind, std::span<const std::byte> message) override;
  void get(const RemoteBuffer &remote, std::uint64_t offset, std::span<std::byte> local,
           Completion &completion) override;
  void put(const RemoteBuffer &remote, std::uint64_t offset, std::span<const std::byte> local,
           Completion &completion) override;
  void close() override { end(&Connection::close); }
  void abort() override;

  // --- for the transport ---------------------------------------------------------------------------------------------
  /// A message of the inner connection. True if it gets through.
  bool lets_through(MessageKind kind);
  void on_inner_lost(Loss loss, const Error &error);
  /// Lets go what was held back long enough. Returns the number of events.
  std::size_t turn();
  /// When turn() has something to do.
  Time next_turn() const;
  Connection *inner() const { return inner_; }
  bool over() const { return state_ == State::kOver; }
  /// The process is dead: nothing comes, goes, or is told.
  void die();

 private:
  /// A message, or a completion, that waits for its moment; or, if that is earlier, until so many have overtaken it.
  struct Wait {
    Moment until;
    unsigned overtakers = 0;
    void overtaken() {
      if (overtakers > 0 && --overtakers == 0) until = Moment();
    }
  };
  struct HeldMessage {
    MessageKind kind;
    std::vector<std::byte> bytes;
    Wait wait;
  };
  struct Operation final : Completion {
    Operation(FaultyConnection &its_owner, Completion &users) : owner(its_owner), completion(users) {}
    void on_complete(Status status) override { owner.on_operation(*this, std::move(status)); }
    FaultyConnection &owner;
    Completion &completion;
    bool fails = false;  ///< although it was carried out
    bool under_way = false;
    std::optional<Wait> wait;
    std::optional<Status> result;
    std::list<Operation>::iterator place;
  };

  void roll();
  bool silent() const;
  std::optional<Wait> roll_wait();
  void hold(MessageKind kind, std::span<const std::byte> message, const Wait &wait);
  template <class Begin> void start(Completion &completion, Begin begin);
  void on_operation(Operation &operation, Status status);
  void complete(Operation &operation, Status status);
  std::size_t release_messages();
  std::size_t release_completions();
  void complete_all(const Error &error);
  void end(void (Connection::*how)());
  void lose(Loss loss, const Error &error);

  Host &transport_;
  Connection *inner_;
  const std::size_t max_message_bytes_ = inner_->max_message_bytes();
  State state_ = State::kOpen;
  bool told_peer_ = false;  ///< that we break
  Loss loss_ = Loss::kBroken;
  Error error_;
  std::optional<Moment> silent_until_;
  std::deque<HeldMessage> messages_;
  std::list<Operation> operations_;
};

}  // namespace nnti::faulty

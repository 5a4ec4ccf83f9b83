// SPDX-License-Identifier: BSD-3-Clause
// The serving side: operations, and requests in progress. Used by the driver.
#pragma once

#include <base/credential.hpp>
#include <nssi/nssi.hpp>
#include <nssi/operations.hpp>
#include <nssi/payload.hpp>
#include <nssi/session.hpp>
#include <nssi/wire.hpp>

#include <atomic>

namespace nssi {

struct Strand;

class IncomingRequest final : public Request {
 public:
  explicit IncomingRequest(Engine &engine) : engine_(engine) {}
  /// Takes a new request, whose args stay where they are in the message.
  void accept(PeerId caller, Session &session, const wire::Request &request, const Operation &operation,
              Clock::time_point now);
  /// Copies the args, so that the message may go.
  void keep_args();
  /// Frees what is of no use to the next request.
  void forget();
  /// Fetches long args, runs the handler, and sees to it that the caller gets an answer.
  void serve();
  /// The caller gave up: no further transfer starts, no result is sent. False if a transfer is under way; the caller is
  /// then told at its end.
  bool cancel();
  /// The caller is gone, perhaps to come back. A request that was not begun is left to its next one, unless its data
  /// can be read here all the same: then it is served, because it was sent.
  void lose_caller();
  /// The caller has come back, and has sent the request again.
  void find_caller(PeerId caller, const wire::Request &request);

  PeerId caller() const override { return caller_; }
  OpCode op() const override { return wire_.op; }
  std::span<const std::byte> args() const override { return wire_.args; }
  std::uint64_t data_bytes() const override { return wire_.data ? wire_.data->remote.size_bytes : 0; }
  Status get_data(std::span<std::byte> destination, std::uint64_t offset) override;
  const nnti::PeerView *view_data() const override { return view_ ? &*view_ : nullptr; }
  Status put_data(std::span<const std::byte> source, std::uint64_t offset) override;
  void limit_transfers(Deadline limit) override { transfer_limit_ = limit; }
  Status reply(std::span<const std::byte> result) override;
  Status reply(std::size_t size_bytes, const Encoder &encode) override;
  Status reply_error(const Error &error) override;
  Deadline deadline() const override { return deadline_; }
  std::uint64_t id() const { return wire_.prefix.id; }
  Session &session() const { return *session_; }
  bool has_long_args() const { return wire_.long_args.has_value(); }

  std::size_t place = 0;  ///< in the server's list of active requests

 private:
  void look_at_data();
  bool give_up();
  std::string name() const;
  Status may_transfer(std::uint64_t offset, std::uint64_t size_bytes) const;
  Status begin_reply();
  Status fetch_args();
  void run_handler();
  template <class Start> Status transfer(Start start);
  bool caller_returns();

  Engine &engine_;
  PeerId caller_;
  Session *session_ = nullptr;
  wire::Request wire_;
  const Operation *operation_ = nullptr;
  Deadline deadline_ = Deadline::never(), transfer_limit_ = Deadline::never();
  Bytes kept_args_;
  std::optional<Block> long_args_;
  std::optional<nnti::PeerView> view_, args_view_;
  bool begun_ = false, replied_ = false, cancelled_ = false, lost_ = false, transferring_ = false;
  std::atomic<bool> returned_{false};
  Strand *waiter_ = nullptr;  ///< for its caller
};

class Server {
 public:
  explicit Server(Engine &engine) : engine_(engine), incarnation_(nessie::random_u64() | 1) {}

  Status add(Operation operation) { return operations_.add(std::move(operation)); }
  void on_hello(PeerId from, std::span<const std::byte> message);
  void on_request(PeerId from, std::uint64_t id, std::span<const std::byte> message);
  void on_cancel(PeerId from, std::uint64_t id);
  void on_result_fetched(PeerId from, std::uint64_t id);
  void on_peer_lost(PeerId peer);
  void forget_all() { sessions_.clear(); }

  /// Answers a request of the session, and keeps the answer for as long as it may be asked for again. kCancelled: the
  /// caller has given the request up. kPeerLost: it is not here; it gets the answer when it comes back.
  Status answer(Session &session, std::uint64_t id, const Payload &result);
  Status answer(Session &session, std::uint64_t id, const Error &error);
  /// Frees what nobody will ask for any more.
  void expire() { sessions_.expire(); }
  Deadline next_expiry() const { return sessions_.next_expiry(); }

 private:
  /// The slot of that very request; null: it is over, or never was.
  Slot *find(PeerId from, std::uint64_t id) const;
  void refuse(PeerId caller, std::uint64_t id, const Error &error);
  void repeat(Slot &slot, PeerId from, const wire::Request &request);
  Status answer(Session &session, Slot &slot, wire::Result &message);
  Status answer_long(Session &session, Slot &slot, const Payload &result);
  Status offer_long_result(Slot &slot);
  void begin(IncomingRequest &request, const Operation &operation);
  IncomingRequest &take();
  void put_back(IncomingRequest &request);

  Engine &engine_;
  const std::uint64_t incarnation_;
  Operations operations_;
  Sessions sessions_;
  Bytes scratch_;
  std::vector<std::unique_ptr<IncomingRequest>> requests_;
  std::vector<IncomingRequest *> active_, free_;
};

}  // namespace nssi

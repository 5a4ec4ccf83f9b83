// SPDX-License-Identifier: BSD-3-Clause
// The serving side: operations, requests in progress, long results that wait to be fetched. Used by the driver.
#pragma once

#include <nssi/nssi.hpp>
#include <nssi/wire.hpp>

#include <list>
#include <unordered_map>

namespace nssi {

class Server;

struct Operation {
  std::string name;
  HandlerKind kind = HandlerKind::kFiber;
  Handler handler, arrival;
};

class IncomingRequest final : public Request {
 public:
  explicit IncomingRequest(Engine &engine) : engine_(engine) {}
  /// Takes a new request, whose args stay where they are in the message.
  void accept(PeerId caller, const wire::Request &request, const Operation &operation);
  /// Copies the args, so that the message may go.
  void keep_args();
  /// Frees what is of no use to the next request.
  void forget();
  /// Fetches long args, runs the handler, and sees to it that the caller gets an answer.
  void serve();
  /// The caller gave up: no further transfer starts, no result is sent. False if a transfer is under way; the caller is
  /// then told at its end.
  bool cancel();
  /// The caller is gone. A request whose data can be read here all the same is served nevertheless: it was sent.
  void lose_caller();

  PeerId caller() const override { return caller_; }
  OpCode op() const override { return wire_.op; }
  std::span<const std::byte> args() const override { return wire_.args; }
  std::uint64_t data_bytes() const override { return wire_.data ? wire_.data->remote.size_bytes : 0; }
  Status get_data(std::span<std::byte> destination, std::uint64_t offset) override;
  const nnti::PeerView *view_data() const override { return view_ ? &*view_ : nullptr; }
  Status put_data(std::span<const std::byte> source, std::uint64_t offset) override;
  void limit_transfers(Deadline limit) override { transfer_limit_ = limit; }
  Status reply(std::span<const std::byte> result) override;
  Status reply_error(const Error &error) override;
  Deadline deadline() const override { return deadline_; }
  std::uint64_t id() const { return wire_.prefix.id; }
  bool has_long_args() const { return wire_.long_args.has_value(); }

  std::size_t place = 0;  ///< in the server's list of active requests

 private:
  Status may_transfer(std::uint64_t offset, std::uint64_t size_bytes) const;
  Status begin_reply();
  Status fetch_args();
  void run_handler();
  template <class Start> Status transfer(Start start);

  Engine &engine_;
  PeerId caller_;
  wire::Request wire_;
  const Operation *operation_ = nullptr;
  Deadline deadline_ = Deadline::never(), transfer_limit_ = Deadline::never();
  Bytes kept_args_;
  std::optional<nnti::PeerView> view_;
  bool replied_ = false, cancelled_ = false, transferring_ = false;
};

class Server {
 public:
  explicit Server(Engine &engine) : engine_(engine) {}

  Status add(OpCode op, Operation operation);
  void on_request(PeerId from, std::uint64_t id, std::span<const std::byte> message);
  void on_cancel(PeerId from, std::uint64_t id);
  void on_result_fetched(PeerId from, std::uint64_t id);
  void on_peer_lost(PeerId peer);
  void forget_all() { long_results_.clear(); }

  /// Answers a request that no handler sees.
  Status refuse(PeerId caller, std::uint64_t id, const Error &error);
  /// Leaves a result that does not fit a message registered here until the caller has fetched it.
  Status send_long_result(PeerId caller, std::uint64_t id, std::span<const std::byte> result, Deadline deadline);
  /// Frees the long results whose callers have stopped waiting.
  void expire();
  Deadline next_expiry() const;

 private:
  struct LongResult {
    PeerId caller;
    std::uint64_t id;
    Bytes bytes;
    std::optional<nnti::RegisteredBuffer> buffer;
    Deadline until = Deadline::never();
  };
  IncomingRequest &take();
  void put_back(IncomingRequest &request);

  Engine &engine_;
  std::unordered_map<OpCode, Operation> operations_;
  std::vector<std::unique_ptr<IncomingRequest>> requests_;
  std::vector<IncomingRequest *> active_, free_;
  std::list<LongResult> long_results_;
};

}  // namespace nssi

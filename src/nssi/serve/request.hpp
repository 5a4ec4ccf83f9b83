// SPDX-License-Identifier: BSD-3-Clause
// A request in progress, and what is moved between its caller and here: its data, long arguments, a long list of where
// its data are. Used by the driver; what a handler calls may come from a pool's thread, and is then done by the driver
// while the handler's fiber waits.
//
// Design notes. A transfer is begun, and ends, by the driver; it is waited for where the handler runs. It may consist
// of pieces, one for each segment that it touches, which are under way together; the first that fails says how it
// ended. One that is interrupted because the connection is lost is repeated, which one-sided transfers may be, by who
// waits for it, when the caller is back.
#pragma once

#include <base/clock.hpp>
#include <nssi/nssi.hpp>
#include <nssi/observe/counters.hpp>
#include <nssi/observe/tracer.hpp>
#include <nssi/serve/answers.hpp>
#include <nssi/wire/segments.hpp>
#include <nssi/wire/wire.hpp>

#include <atomic>
#include <string_view>

namespace nssi {

struct EventState;
struct Strand;

struct Move {
  enum class What { kGet, kPut, kArgs, kSegments };
  What what;
  std::span<std::byte> memory;  ///< here; a put only reads it
  std::uint64_t offset = 0;     ///< there

  bool is_data() const { return what == What::kGet || what == What::kPut; }
  nnti::Rights needed_rights() const {
    return what == What::kPut ? nnti::Rights::kRemoteWrite : nnti::Rights::kRemoteRead;
  }
  /// In a trace.
  std::string_view name() const;
};

/// When a transfer began, on the clocks of those who measure it: 0, nobody does.
struct TransferStart {
  std::uint64_t ticks = 0;
  nessie::Clock::time_point time;
};

class IncomingRequest final : public Request {
 public:
  /// `number`: which of the server's it is.
  IncomingRequest(Core &core, Answers &answers, std::size_t number) : core_(core), answers_(answers), number_(number) {}
  /// Where the next request is decoded; until accept(), it is none.
  wire::Request &next() { return wire_; }
  /// What it is charged for, from before accept() to forget().
  Charge &charge() { return charge_; }
  /// Takes that request, whose args stay where they are in the message.
  void accept(PeerId caller, Role role, Session &session, const Offered &offered, Clock::time_point now);
  /// Copies the args, so that the message may go.
  void keep_args();
  /// Frees what is of no use to the next request.
  void forget();
  /// Fetches what did not fit the message. False: the handler is not to run; who is to hear of that has heard.
  bool prepare();
  /// The call's deadline has passed: its caller has heard so.
  bool is_too_late();
  /// Runs the handler, on the driver's or on a pool's thread, and sees to it that the caller gets an answer.
  void serve();
  /// The caller gave up: no further transfer starts, no result is sent. False if a transfer is under way; the caller is
  /// then told at its end.
  bool cancel();
  /// The caller is gone, perhaps to come back. A request that was not begun is left to its next one, unless its data
  /// can be read here all the same: then it is served, because it was sent.
  void lose_caller();
  /// The caller has come back, and has sent the request again.
  void find_caller(PeerId caller, const wire::Request &request);

  PeerId caller() const override { return caller_.load(std::memory_order_relaxed); }
  Role role() const override { return role_; }
  std::span<const std::byte, 16> caller_identity() const override { return session_->id(); }
  OpCode op() const override { return wire_.op; }
  std::span<const std::byte> args() const override { return wire_.args; }
  std::uint64_t data_bytes() const override { return data_bytes_; }
  Status get_data(std::span<std::byte> destination, std::uint64_t offset) override;
  Result<int> take_descriptor(std::uint64_t key) override;
  Status give_descriptor(std::uint64_t key, int descriptor) override;
  const nnti::PeerView *view_data() const override {
    meter_.viewed_bytes = view_ ? data_bytes_ : 0;
    return view_ ? &*view_ : nullptr;
  }
  Status put_data(std::span<const std::byte> source, std::uint64_t offset) override;
  Transfer start_get(std::span<std::byte> destination, std::uint64_t offset) override;
  Transfer start_put(std::span<const std::byte> source, std::uint64_t offset) override;
  void limit_transfers(Deadline limit) override { transfer_limit_ = limit; }
  Status reply(std::span<const std::byte> result) override;
  Status reply(std::size_t size_bytes, const Encoder &encode) override;
  Status reply_error(const Error &error) override;
  Deadline deadline() const override { return deadline_; }
  Status check() const override;
  Status wait(Event &event, Deadline deadline) override;
  Status sleep_until(Deadline until) override;
  /// When check() may have another answer, unless it is woken before.
  Deadline next_check() const;
  std::uint64_t id() const { return wire_.prefix.id; }
  Session &session() const { return *session_; }
  /// Whether its args, or where its data are, did not fit the message.
  bool has_to_fetch() const { return wire_.long_args || wire_.data_is_list; }
  /// Short, and begun where its request arrives.
  bool runs_in_place() const { return offered_->operation.kind == HandlerKind::kShort && !has_to_fetch(); }
  const Offered &offered() const { return *offered_; }
  /// It is over, or was given up.
  void count() {
    if (trace_) [[unlikely]]
      end_trace();
    if (offered_->counters) meter_.count(*offered_->counters, session_->counters);
  }

  std::size_t place = 0;  ///< in the server's list of active requests

  // --- for its transfers --------------------------------------------------------------------------------------------
  /// Where the data are was left at the caller, and has to be fetched (anew). The driver.
  bool needs_segments() const { return segments_are_missing_; }
  Status fetch_segments();
  /// What the calling thread had better copy itself: a pool's, of memory that can be read here. Empty: nothing.
  std::span<const std::byte> in_place(const Move &move) const;
  /// The driver.
  Status may_move(const Move &move) const;
  TransferStart begin_transfer(TransferState &transfer);
  void begin_pieces(const Move &move, TransferState &transfer);
  void end_transfer(TransferState &transfer, const Move &move, const TransferStart &start, Code outcome);
  /// Of one that ended with `outcome`, over the connection `caller`: that is gone, and it may be repeated.
  bool is_interrupted(Code outcome, PeerId caller);
  /// Waits for the caller, who has lost the connection `caller`.
  bool caller_returns(PeerId caller, Deadline deadline);
  /// Until when a caller that is gone is waited for.
  Deadline patience() const;
  /// Of a transfer that begins now.
  Deadline transfer_limit() const { return deadline_.earlier(transfer_limit_); }

 private:
  void accept_data();
  void look_at_data();
  bool give_up();
  /// The caller's connection is gone; it may come back.
  bool is_lost() const { return awaited_until() != kIsHere; }
  Clock::time_point awaited_until() const { return awaited_until_.load(std::memory_order_relaxed); }
  Status wait(EventState &event, Deadline deadline);
  void wake_watchers();
  std::string name() const;
  bool has_data() const { return (wire_.data && !wire_.data_is_list) || !segments_.empty(); }
  void find_segments(std::span<const std::byte> list);
  Status take_segments(std::span<const std::byte> list);
  Status fetch_rest();
  Status fetch_args();
  Status move_data(const Move &move);
  Transfer begin(const Move &move);
  TransferState *under_way() const { return transfers_.empty() ? nullptr : transfers_.back(); }
  void finish_transfers();
  Status await_room(std::uint64_t size_bytes);
  void run_handler();
  void run_traced();
  bool acknowledge();
  template <class Answer> Status answer(const Answer &answer);
  template <class Answer> Status answer_in_turn(const Answer &answer);
  void note_transfer(const Move &move, const TransferStart &start, Code outcome);
  void begin_trace();
  void end_trace();

  Core &core_;
  Answers &answers_;
  const std::size_t number_;
  std::atomic<PeerId> caller_{PeerId{}};
  Session *session_ = nullptr;
  Role role_ = Role::kUser;
  wire::Request wire_;
  SegmentMap segments_;  ///< if the data are not one whole buffer
  std::uint64_t data_bytes_ = 0;
  const Offered *offered_ = nullptr;
  mutable RequestMeter meter_;
  TracedWork trace_;
  Charge charge_;
  Deadline deadline_ = Deadline::never(), transfer_limit_ = Deadline::never();
  Bytes kept_args_;
  std::optional<Block> long_args_;
  std::optional<nnti::PeerView> view_, args_view_;
  bool begun_ = false, replied_ = false, segments_are_missing_ = false;
  std::vector<TransferState *> transfers_;  ///< that are under way
  std::atomic<bool> cancelled_{false};
  bool acknowledged_ = false;  ///< the caller does not wait for more
  std::atomic<bool> returned_{false};
  Strand *waiter_ = nullptr;  ///< for its caller
  static constexpr Clock::time_point kIsHere{};
  std::atomic<Clock::time_point> awaited_until_{kIsHere};  ///< once the caller's connection is gone
  std::vector<Strand *> watchers_;                         ///< who wait as long as the caller does
};

class TransferState final : public nnti::Completion {
 public:
  TransferState(Core &core, IncomingRequest &request, const Move &move) : core_(core), request_(request), move_(move) {}
  TransferState(const TransferState &) = delete;
  /// Waits for its end.
  ~TransferState();
  void start();
  bool test();
  /// As Transfer::wait().
  Status wait(Deadline deadline);

  // --- the driver ---------------------------------------------------------------------------------------------------
  /// Of one of its pieces.
  void on_complete(Status status) override;
  /// Another piece is about to begin.
  void add_piece() { ++pieces_; }

 private:
  bool launch(bool in_place);
  void copy(std::span<const std::byte> source);
  bool await(Deadline deadline);
  bool resume(Deadline deadline);
  void give_up();
  void end(Status status);

  Core &core_;
  IncomingRequest &request_;
  const Move move_;
  TransferStart began_;
  PeerId caller_;  ///< the connection that it goes over
  Deadline limit_ = Deadline::never();
  std::optional<Deadline> patience_;  ///< with the caller's absence; none while it is here
  std::size_t pieces_ = 0;            ///< that have not ended, and one while others are being begun
  Status status_;
  bool is_over_ = true;  ///< its outcome is final
  std::atomic<bool> done_{true};
  Strand *waiter_ = nullptr;
};

}  // namespace nssi

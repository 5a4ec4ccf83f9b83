// SPDX-License-Identifier: BSD-3-Clause
// What both sides of a runtime stand on, its calls and its services: the endpoint, the threads that drive it, and what
// waits there. It knows neither side; Engine (engine.hpp) is a core that does.
//
// Design notes. One thread at a time drives (driver.hpp): the one in run(), or one of those that wait for a call. Only
// the driver touches the endpoint, the scheduler, the calls and the requests; they need no locks. A thread that wants
// something while another one drives hands it over and wakes the driver. Handlers run on the driver's thread: on a
// fiber, or in place. Everything that waits goes through wait_until(), which suspends the fiber, or drives, or sleeps
// until the driver has done it, whichever fits the place it is called from.
#pragma once

#include <base/birth.hpp>
#include <nssi/drive/blocks.hpp>
#include <nssi/drive/driver.hpp>
#include <nssi/drive/idleness.hpp>
#include <nssi/drive/outbox.hpp>
#include <nssi/drive/pool.hpp>
#include <nssi/drive/scheduler.hpp>
#include <nssi/drive/settings.hpp>
#include <nssi/nssi.hpp>
#include <nssi/observe/tracer.hpp>
#include <nssi/wire/wire.hpp>

#include <array>
#include <atomic>
#include <deque>
#include <unordered_set>

namespace nssi {

/// Up to this size a message is encoded on the stack: requests and results without arguments are smaller.
inline constexpr std::size_t kSmallMessage = 192;
/// Memory of blocks that nobody uses and that is kept for the next ones.
inline constexpr std::size_t kMostKeptBytes = std::size_t{192} << 20;

/// Does what the program has given to be done: what it throws is logged.
void do_guarded(const std::function<void()> &work);

class Core {
 public:
  Core(const Core &) = delete;

  const nessie::Birth &birth() const { return birth_; }
  nnti::Endpoint &endpoint() { return *endpoint_; }
  Scheduler &scheduler() { return scheduler_; }
  Driver &driver() { return driver_; }
  Blocks &blocks() { return blocks_; }
  std::chrono::milliseconds timeout() const { return timeout_.load(std::memory_order_relaxed); }
  /// How long a lost connection is tried to be made again; 0: not at all.
  std::chrono::milliseconds reconnect() const { return reconnect_.load(std::memory_order_relaxed); }
  std::size_t max_long_bytes() const { return max_long_bytes_.load(std::memory_order_relaxed); }
  const std::optional<nessie::Credential> &operators() const { return operators_; }
  bool closing() const { return closing_; }
  /// Whether statistics are kept.
  bool counts() const { return counts_; }
  /// Null: none was given.
  const nessie::Budget *budget() const { return budget_; }
  /// Null: this process writes no trace.
  Tracer *tracer() { return tracer_.get(); }
  /// Whether a request that is here belongs to a trace.
  bool has_traced_requests() const { return traced_.load(std::memory_order_relaxed) != 0; }
  /// What the calling fiber, or handler, does belongs to this. Any thread.
  TraceContext &trace_context();
  bool in_fiber() const { return in_drivers_fiber() || Worker::current_strand() != nullptr; }

  /// While it lives, the core is not destroyed, although what its owner waited for has happened.
  class Use {
   public:
    explicit Use(Core &core) : core_(core) { core_.in_use_.fetch_add(1); }
    ~Use() { core_.in_use_.fetch_sub(1); }
    Use(const Use &) = delete;

   private:
    Core &core_;
  };

  // --- any thread ---------------------------------------------------------------------------------------------------
  /// One turn, if the role is free. Without waiting.
  void poke();
  /// Waits until `done` is set (by the driver) or the deadline passes. `waiter` is where the driver finds the fiber to
  /// wake when it sets `done`; returns at once, with `done` unset, in a fiber of a runtime that is being destroyed.
  void wait_until(const std::atomic<bool> &done, Strand *&waiter, Deadline deadline);
  /// Runs `work` as the driver, and waits for it.
  template <class Work> void run_as_driver(Work &&work) {
    if (Turn turn(driver_); turn) return work();
    have_done(work);
  }
  /// Suspends the calling fiber, a pool's or the driver's. Callers loop.
  void suspend(Deadline deadline);
  Strand *current_strand() const { return in_drivers_fiber() ? scheduler_.current() : Worker::current_strand(); }
  void spawn(std::function<void()> work);
  void post(std::function<void()> work);
  /// Runs `work` as the driver some time.
  void hand_over(std::function<void()> work);
  void wake() { endpoint_->wake(); }
  /// As Runtime::on_peer_connected() and on_peer_lost().
  void add_on_peer_connected(std::function<void(PeerId)> callback);
  void add_on_peer_lost(std::function<void(PeerId, const Error &)> callback);

  // --- the driver ---------------------------------------------------------------------------------------------------
  /// Sends, or keeps the message until the transport takes it.
  [[gnu::always_inline]] Status send(PeerId peer, std::span<const std::byte> message) {
    if (!outbox_.empty() && outbox_.holds(peer)) [[unlikely]]
      return send_later(peer, message);
    auto status = endpoint_->send(peer, message);
    return status.ok() || status.code() != Code::kBusy ? std::move(status) : send_later(peer, message);
  }
  template <class Message> Status send_message(PeerId peer, const Message &message) {
    std::array<std::byte, kSmallMessage> small;
    if (const auto size = xdr::encode_to(message, std::span(small)); size != 0)
      return send(peer, std::span(small).first(size));
    xdr::encode_into(message, scratch_);
    return send(peer, scratch_);
  }
  /// Sends the message, and leaves its bytes in `copy`.
  template <class Message> Status send_message(PeerId peer, const Message &message, Bytes &copy) {
    std::array<std::byte, kSmallMessage> small;
    if (const auto size = xdr::encode_to(message, std::span(small)); size != 0) {
      auto status = send(peer, std::span(small).first(size));
      copy.assign(small.begin(), small.begin() + static_cast<std::ptrdiff_t>(size));
      return status;
    }
    xdr::encode_into(message, copy);
    return send(peer, copy);
  }
  /// Whether a message of that size can be sent to `peer`.
  bool fits(PeerId peer, std::size_t message_bytes) const {
    return message_bytes <= wire::kAlwaysFits || message_bytes <= endpoint_->max_message_bytes(peer);
  }
  /// The longest arguments that can go along with a request.
  std::size_t max_inline_args(PeerId peer) const {
    return std::max(endpoint_->max_message_bytes(peer), wire::kAlwaysFits) - wire::kMaxRequestOverhead;
  }
  /// There is a connection to it.
  bool has_peer(PeerId peer) const { return peers_.contains(peer.value); }
  bool has_unsent(PeerId peer) const { return outbox_.holds(peer) || endpoint_->has_unsent(peer); }
  void wake(Strand *strand);
  void count_traced_requests(int more) {
    traced_.store(traced_.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
  }
  /// Sets what a waiter waits for.
  void set_done(std::atomic<bool> &done, Strand *waiter);
  /// The next turn is to call on_turn().
  void ask_for_turn() { wants_turn_ = true; }
  void add_peer(PeerId peer) { peers_.insert(peer.value); }
  void tell_peer_connected(PeerId peer);
  /// To those who want to know when a peer is lost.
  void tell_peer_lost(PeerId peer, const Error &error);
  /// Ends a connection, and what depends on it. Nobody is told.
  void drop_peer(PeerId peer, const Error &why);
  /// Ends the connection to a peer that does not answer, as if it had been lost.
  void give_up_peer(PeerId peer, const Error &error);

 protected:
  explicit Core(const RuntimeOptions &options);
  ~Core() = default;
  /// `events` are the endpoint's.
  Status open(RuntimeOptions options, const Settings &settings, nnti::EventSink &events);
  void apply(const Settings &settings);
  bool is_open() const { return endpoint_ != nullptr; }
  /// Ends all connections, and lets all fibers run to their ends; nothing new begins. See Engine::close().
  void finish_fibers(Deadline until);
  bool has_pool_work() const;
  /// The pools' threads end.
  void end_pools() { pools_.clear(); }
  void close_endpoint();
  /// Null: there is none of that name.
  Pool *pool_named(std::string_view name) const;

  /// Turns until `done` is set or the deadline passes. Now and then, and when there is nothing to do, it ends if
  /// `is_over` says so.
  template <class IsOver>
  void drive_until(const std::atomic<bool> &done, Deadline deadline, nnti::Waking waking, IsOver is_over) {
    Idleness idleness(*endpoint_);
    for (int turns = 1; !done.load(std::memory_order_acquire); ++turns) {
      const bool idle = idleness.is_long_after(turn());
      if (!idle && turns % kTurnsBetweenChecks != 0) continue;
      if (has_passed(deadline) || is_over()) return;
      if (idle && !done.load(std::memory_order_acquire)) endpoint_->wait(deadline.earlier(next_expiry()), waking);
      expire();
    }
  }
  void lose_peer(PeerId peer, const Error &error);
  const auto &peers() const { return peers_; }

  // --- what stands on it --------------------------------------------------------------------------------------------
  /// Once for each ask_for_turn().
  virtual void on_turn() = 0;
  /// Deadlines may have passed; next_deadline() says which is the first.
  virtual void on_expiry() = 0;
  virtual Deadline next_deadline() const = 0;
  /// The connection is gone. True: it is made again, until so much time has passed.
  virtual bool on_dropped(PeerId peer, const Error &error, std::chrono::milliseconds patience) = 0;

 private:
  static constexpr int kTurnsBetweenChecks = 64;

  Status send_later(PeerId peer, std::span<const std::byte> message);
  bool in_drivers_fiber() const { return driver_.is_mine() && scheduler_.current() != nullptr; }
  /// By another thread.
  template <class Work> [[gnu::noinline]] void have_done(Work &work) { hand_over_and_wait(std::ref(work)); }
  void hand_over_and_wait(const std::function<void()> &work);
  bool turn();
  void expire();
  Deadline next_expiry() const;
  void suspend_until(const std::atomic<bool> &done, Strand *&waiter, Deadline deadline);
  void suspend_in_pool(const std::atomic<bool> &done, Strand *&waiter, Deadline deadline);
  std::size_t unfinished() const;
  void flush_outbox();
  bool forget(PeerId peer, const Error &error, std::chrono::milliseconds patience);

  std::unique_ptr<nnti::Endpoint> endpoint_;
  const nessie::Birth birth_;
  Driver driver_;
  std::atomic<int> in_use_{0};
  Scheduler scheduler_;
  std::vector<std::unique_ptr<Pool>> pools_;
  Blocks blocks_{kMostKeptBytes};
  nessie::Budget *budget_ = nullptr;
  std::unique_ptr<Tracer> tracer_;
  std::atomic<int> traced_{0};  ///< requests
  TraceContext drivers_trace_;  ///< of the handler that the driver runs in place
  Outbox outbox_;
  bool wants_turn_ = false;  ///< see ask_for_turn()
  Bytes scratch_;
  std::unordered_set<std::uint64_t> peers_;
  /// In the order in which they were added; they stay where they are.
  std::deque<std::function<void(PeerId)>> on_peer_connected_;
  std::deque<std::function<void(PeerId, const Error &)>> on_peer_lost_;
  std::atomic<bool> closing_{false};
  bool counts_ = true;  ///< see counts()
  std::optional<nessie::Credential> operators_;
  std::atomic<std::chrono::milliseconds> timeout_{}, reconnect_{};
  std::atomic<std::size_t> max_long_bytes_{0};
};

}  // namespace nssi

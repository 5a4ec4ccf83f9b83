// SPDX-License-Identifier: BSD-3-Clause
#include <nssi/drive/core.hpp>

#include <base/log.hpp>
#include <base/thrown.hpp>

#include <algorithm>
#include <thread>

namespace nssi {

namespace log = nessie::log;

namespace {

constexpr int kMaxClosingTurns = 10000;

std::function<void()> guarded(std::function<void()> work) {
  return [work = std::move(work)] { do_guarded(work); };
}

/// One of them may add another.
template <class Callbacks, class... What> void tell(const Callbacks &callbacks, const What &...what) {
  for (std::size_t i = 0, count = callbacks.size(); i < count; ++i) do_guarded([&] { callbacks[i](what...); });
}

}  // namespace

void do_guarded(const std::function<void()> &work) {
  if (const auto thrown = nessie::thrown_by(work)) log::error("work on the progress thread failed: {}", *thrown);
}

Core::Core(const RuntimeOptions &options)
    : scheduler_(options.fiber_stack_bytes, std::max<std::size_t>(options.max_fibers, 1), options.bulk_quiet,
                 options.bulk_longest_hold) {}

Status Core::open(RuntimeOptions options, const Settings &settings, nnti::EventSink &events) {
  counts_ = settings.statistics;
  operators_ = options.operators;
  const auto &config = options.endpoint.config;
  if (!operators_ && config.get("operator_credential")) {
    auto credential = nessie::Credential::of_setting(config, "operator_credential");
    if (!credential.ok()) return credential.error();
    operators_ = *credential;
  }
  if (!settings.trace_folder.empty()) {
    auto tracer = Tracer::open(settings.trace_folder, settings.trace_every);
    if (!tracer.ok()) return tracer.error();
    tracer_ = *std::move(tracer);
  }
  for (const auto &pool : settings.pools) {
    auto started = Pool::start(pool, options.fiber_stack_bytes, std::max<std::size_t>(options.max_fibers, 1));
    if (!started.ok()) return started.error();
    pools_.push_back(*std::move(started));
  }
  auto endpoint = nnti::Endpoint::open(std::move(options.endpoint), events);
  if (!endpoint.ok()) return endpoint.error();
  endpoint_ = *std::move(endpoint);
  blocks_.use(*endpoint_);
  budget_ = options.budget;
  if (budget_ != nullptr) blocks_.draw_from(*budget_, [this] { hand_over([this] { blocks_.drop_kept(); }); });
  return {};
}

void Core::apply(const Settings &settings) {
  timeout_ = settings.timeout;
  reconnect_ = settings.reconnect;
  max_long_bytes_ = settings.max_long_bytes;
}

void Core::close_endpoint() {
  blocks_.close();
  while (in_use_.load() != 0) std::this_thread::yield();
  endpoint_.reset();
}

/// Lets the fibers run to their ends: whatever they wait for ends with kCancelled. Those in pools' threads may compute,
/// or block, until then.
void Core::finish_fibers(Deadline until) {
  driver_.do_work();
  flush_outbox();
  closing_ = true;
  const Error ended{Code::kCancelled, "the peer was disconnected", nessie::Scope::kPeer};
  while (!peers_.empty()) drop_peer(PeerId{*peers_.begin()}, ended);
  scheduler_.hasten_last();
  const auto may_go_on = [&](int turns) { return has_pool_work() ? !until.passed() : turns < kMaxClosingTurns; };
  for (int turns = 0; unfinished() != 0 && may_go_on(turns); ++turns) {
    scheduler_.wake_all();
    for (auto &pool : pools_) pool->wake_all();
    if (!turn() && scheduler_.unfinished() == 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  if (const auto count = scheduler_.unfinished(); count != 0)
    log::error("{} handlers go on waiting although the runtime is being destroyed", count);
}

/// A pool's thread cannot be left behind: what it runs may come back to the runtime.
bool Core::has_pool_work() const {
  return std::ranges::any_of(pools_, [](const auto &pool) { return pool->unfinished() != 0; });
}

std::size_t Core::unfinished() const {
  auto count = scheduler_.unfinished();
  for (const auto &pool : pools_) count += pool->unfinished();
  return count;
}

Pool *Core::pool_named(std::string_view name) const {
  const auto found = std::ranges::find(pools_, name, [](const auto &pool) -> std::string_view { return pool->name(); });
  return found == pools_.end() ? nullptr : found->get();
}

// --- driving ----------------------------------------------------------------------------------------------------------

bool Core::turn() {
  bool busy = driver_.do_work();
  busy |= endpoint_->progress() != 0;
  busy |= scheduler_.run_ready();
  if (!outbox_.empty()) flush_outbox();
  if (std::exchange(wants_turn_, false)) on_turn();
  driver_.wake_done(busy);
  return busy;
}

Deadline Core::next_expiry() const {
  const auto next_flush = tracer_ ? tracer_->next_flush() : Deadline::never();
  return scheduler_.next_expiry().earlier(next_flush).earlier(next_deadline());
}

void Core::expire() {
  scheduler_.expire();
  on_expiry();
  if (tracer_) tracer_->flush_if_due();
}

void Core::poke() {
  if (Worker::current() != nullptr) return;
  if (Turn turn(driver_); turn && !in_fiber()) {
    this->turn();
    expire();
  }
}

void Core::wait_until(const std::atomic<bool> &done, Strand *&waiter, Deadline deadline) {
  if (in_drivers_fiber()) return suspend_until(done, waiter, deadline);
  if (Worker::current_strand() != nullptr) return suspend_in_pool(done, waiter, deadline);
  while (!done.load(std::memory_order_acquire)) {
    if (Turn turn(driver_); turn) {
      const bool may_give_up = !turn.nested();
      drive_until(done, deadline, nnti::Waking::kInTurn, [&] { return may_give_up && driver_.wanted(); });
    } else {
      driver_.wait_for_turn(done, deadline);
    }
    if (done.load(std::memory_order_acquire) || has_passed(deadline)) break;
  }
  driver_.pass_on();
}

void Core::suspend_until(const std::atomic<bool> &done, Strand *&waiter, Deadline deadline) {
  waiter = scheduler_.current();
  while (!done.load(std::memory_order_relaxed) && !closing_ && !deadline.passed()) scheduler_.suspend(deadline);
  waiter = nullptr;
}

/// `waiter` is the driver's: it is set and taken back there.
void Core::suspend_in_pool(const std::atomic<bool> &done, Strand *&waiter, Deadline deadline) {
  run_as_driver([&, self = Worker::current_strand()] { waiter = self; });
  while (!done.load(std::memory_order_acquire) && !closing_ && !deadline.passed()) suspend(deadline);
  if (!done.load(std::memory_order_acquire)) run_as_driver([&] { waiter = nullptr; });
}

TraceContext &Core::trace_context() {
  static thread_local TraceContext nothing;
  if (auto *strand = current_strand(); strand != nullptr) return strand->trace;
  if (driver_.is_mine()) return drivers_trace_;
  return nothing = {};
}

void Core::suspend(Deadline deadline) {
  if (auto *worker = Worker::current(); worker != nullptr) return worker->suspend(deadline);
  scheduler_.suspend(deadline);
}

void Core::wake(Strand *strand) {
  if (strand->home != nullptr) return strand->home->wake(strand);
  scheduler_.wake(strand);
}

void Core::set_done(std::atomic<bool> &done, Strand *waiter) {
  done.store(true, std::memory_order_release);
  if (waiter != nullptr)
    wake(waiter);
  else
    driver_.note_done();
}

void Core::hand_over_and_wait(const std::function<void()> &work) {
  std::atomic<bool> done{false};
  auto *strand = Worker::current_strand();
  driver_.hand_over([&, strand] {
    work();
    set_done(done, strand);
  });
  wake();
  while (strand != nullptr && !done.load()) suspend(Deadline::never());
  while (!done.load()) {
    if (Turn turn(driver_); !turn) driver_.wait_for_turn(done, Deadline::never());  // giving a turn up does the work
  }
  driver_.pass_on();
}

void Core::spawn(std::function<void()> work) {
  if (driver_.is_mine()) return scheduler_.spawn(guarded(std::move(work)));
  hand_over([this, work = guarded(std::move(work))]() mutable { scheduler_.spawn(std::move(work)); });
}

void Core::post(std::function<void()> work) { hand_over(guarded(std::move(work))); }

/// The work may be done, and the runtime end for it, before the driver is woken: the destructor waits for that.
void Core::hand_over(std::function<void()> work) {
  const Use use(*this);
  driver_.post(std::move(work));
  wake();
}

// --- peers ------------------------------------------------------------------------------------------------------------

void Core::drop_peer(PeerId peer, const Error &why) {
  endpoint_->disconnect(peer);
  forget(peer, why, {});
}

void Core::give_up_peer(PeerId peer, const Error &error) {
  endpoint_->disconnect(peer);
  lose_peer(peer, error);
}

/// True: it is only its connection that is gone, for a while.
bool Core::forget(PeerId peer, const Error &error, std::chrono::milliseconds patience) {
  peers_.erase(peer.value);
  outbox_.forget(peer);
  const bool is_retried = on_dropped(peer, error, patience);
  blocks_.forget(peer);
  return is_retried;
}

void Core::lose_peer(PeerId peer, const Error &error) {
  if (!forget(peer, error, closing_ ? std::chrono::milliseconds(0) : reconnect())) tell_peer_lost(peer, error);
}

void Core::add_on_peer_connected(std::function<void(PeerId)> callback) {
  run_as_driver([&] { on_peer_connected_.push_back(std::move(callback)); });
}

void Core::add_on_peer_lost(std::function<void(PeerId, const Error &)> callback) {
  run_as_driver([&] { on_peer_lost_.push_back(std::move(callback)); });
}

void Core::tell_peer_connected(PeerId peer) { tell(on_peer_connected_, peer); }

void Core::tell_peer_lost(PeerId peer, const Error &error) {
  if (!closing_) tell(on_peer_lost_, peer, error);
}

Status Core::send_later(PeerId peer, std::span<const std::byte> message) {
  outbox_.add(peer, message);
  return {};
}

/// The endpoint's own queue goes out as its peer takes it; what waits here follows when that is empty.
void Core::flush_outbox() {
  outbox_.flush([&](PeerId peer) { return !endpoint_->has_unsent(peer); },
                [&](PeerId peer, std::span<const std::byte> message) {
                  return endpoint_->send(peer, message).code() != Code::kBusy;
                });
  for (const auto peer : outbox_.take_overfull())
    if (has_peer(peer))
      give_up_peer(peer, Error{Code::kPeerLost, "the peer does not take what is sent to it, and too much waits for it",
                               nessie::Scope::kPeer});
}

}  // namespace nssi

// SPDX-License-Identifier: BSD-3-Clause
#include <nssi/runtime/engine.hpp>

#include <nssi/wire/coarse_clock.hpp>

#include <fmt/format.h>

#include <base/log.hpp>
#include <base/thread.hpp>

#include <algorithm>
#include <exception>
#include <thread>

namespace nssi {

namespace log = nessie::log;

namespace {

constexpr int kTurnsBetweenChecks = 64;
constexpr int kMaxClosingTurns = 10000;

/// Tells when to leave the waiting to the endpoint, which knows when cores are short, but begins by reading clocks:
/// once turns without an event have taken some microseconds; on a full node after a few of them. One takes ten
/// nanoseconds, or a system call for each peer.
class Idleness {
 public:
  explicit Idleness(const nnti::Endpoint &endpoint) : endpoint_(endpoint) {}
  /// After each turn. True: nothing has happened for long. Who is waited for may have a thread of the same physical
  /// core, and is faster if this one relaxes; on others, the line that is polled comes sooner.
  bool is_long_after(bool busy) {
    if (busy) turns_ = 0;
    if (busy || turns_ == kLong) return !busy;
    nessie::relax();
    if (++turns_ == kFirst) begin();
    if (turns_ > kFirst && is_power_of_two(turns_) && Clock::now() - began_ > kMost) turns_ = kLong;
    return turns_ == kLong;
  }

 private:
  static constexpr unsigned kFirst = 8, kLong = 256;
  static constexpr auto kMost = std::chrono::microseconds(20);
  /// std::has_single_bit() is a call where the processor is not known to count bits.
  static bool is_power_of_two(unsigned n) { return (n & (n - 1)) == 0; }
  void begin() {
    began_ = Clock::now();
    if (endpoint_.is_crowded()) turns_ = kLong;
  }

  const nnti::Endpoint &endpoint_;
  unsigned turns_ = 0;
  Clock::time_point began_;  ///< of those after the first
};

std::function<void()> guarded(std::function<void()> work) {
  return [work = std::move(work)] { do_guarded(work); };
}

}  // namespace

void do_guarded(const std::function<void()> &work) {
  try {
    work();
  } catch (const std::exception &e) { log::error("work on the progress thread failed: {}", e.what()); } catch (...) {
    log::error("work on the progress thread failed: an exception of unknown type");
  }
}

Engine::Engine(const RuntimeOptions &options)
    : scheduler_(options.fiber_stack_bytes, std::max<std::size_t>(options.max_fibers, 1), options.bulk_quiet,
                 options.bulk_longest_hold) {}

Result<std::unique_ptr<Engine>> Engine::open(RuntimeOptions options) {
  if (auto status = options.endpoint.config.complete(); !status.ok()) return status.error();
  std::unique_ptr<Engine> engine(new Engine(options));
  engine->program_.limits = options.limits;
  engine->program_.pools = options.pools;
  auto settings = read_settings(options.endpoint.config, engine->program_);
  if (!settings.ok()) return settings.error();
  engine->apply(*settings);
  engine->counts_ = settings->statistics;
  engine->prometheus_ = settings->prometheus;
  engine->config_ = options.endpoint.config;
  engine->operators_ = options.operators;
  if (!engine->operators_ && engine->config_.get("operator_credential")) {
    auto credential = nessie::Credential::of_setting(engine->config_, "operator_credential");
    if (!credential.ok()) return credential.error();
    engine->operators_ = *credential;
  }
  if (!settings->trace_folder.empty()) {
    auto tracer = Tracer::open(settings->trace_folder, settings->trace_every);
    if (!tracer.ok()) return tracer.error();
    engine->tracer_ = *std::move(tracer);
  }
  const bool serves = options.endpoint.listen;
  auto endpoint = nnti::Endpoint::open(std::move(options.endpoint), *engine);
  if (!endpoint.ok()) return endpoint.error();
  engine->endpoint_ = *std::move(endpoint);
  engine->blocks_.use(*engine->endpoint_);
  if (options.reload_on_hangup || (serves && settings->reload_on_hangup)) {
    auto hangup = Hangup::watch(*engine);
    if (hangup.ok())
      engine->hangup_ = *std::move(hangup);
    else if (options.reload_on_hangup)
      return hangup.error();
  }
  for (const auto &pool : settings->pools) {
    auto started = Pool::start(pool, options.fiber_stack_bytes, std::max<std::size_t>(options.max_fibers, 1));
    if (!started.ok()) return started.error();
    engine->pools_.push_back(*std::move(started));
  }
  return engine;
}

bool Engine::close() {
  hangup_.reset();
  if (!driver_.is_mine()) driver_.take_for_run([this] { wake(); });
  const auto until = Deadline::in(timeout());
  finish_fibers(until);
  client_.finish_all(Error{Code::kCancelled, "the runtime was destroyed"});
  finish_fibers(until);  // of those who were called back therefore
  return !has_pool_work();
}

Engine::~Engine() {
  if (!endpoint_) return;
  if (!closing_) close();
  pools_.clear();
  client_.detach_all();
  server_.forget_all();
  blocks_.close();
  while (in_use_.load() != 0) std::this_thread::yield();
  client_.links().stop_connecting();
  endpoint_.reset();
}

/// Lets the fibers run to their ends: whatever they wait for ends with kCancelled. Those in pools' threads may compute,
/// or block, until then.
void Engine::finish_fibers(Deadline until) {
  driver_.do_work();
  flush_outbox();
  closing_ = true;
  while (!peers_.empty()) disconnect(PeerId{*peers_.begin()});
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
bool Engine::has_pool_work() const {
  return std::ranges::any_of(pools_, [](const auto &pool) { return pool->unfinished() != 0; });
}

std::size_t Engine::unfinished() const {
  auto count = scheduler_.unfinished();
  for (const auto &pool : pools_) count += pool->unfinished();
  return count;
}

// --- driving ----------------------------------------------------------------------------------------------------------

bool Engine::turn() {
  bool busy = driver_.do_work();
  busy |= endpoint_->progress() != 0;
  busy |= scheduler_.run_ready();
  if (!outbox_.empty()) flush_outbox();
  if (server_.has_waiting()) server_.invite();
  if (!client_.links().all_ready()) client_.links().advance();
  driver_.wake_done(busy);
  return busy;
}

void Engine::run() {
  driver_.take_for_run([this] { wake(); });
  if (!finishes()) server_.begin_anew();
  Idleness idleness(*endpoint_);
  for (int turns = 1; !stop_.load(std::memory_order_relaxed); ++turns) {
    const bool idle = idleness.is_long_after(turn());
    if (!idle && turns % kTurnsBetweenChecks != 0) continue;
    if (reload_.load(std::memory_order_relaxed)) {
      reload_now();
      continue;
    }
    if (finishes() && has_finished()) break;
    if (idle) endpoint_->wait(next_expiry());
    expire();
  }
  stop_.store(false);
  finish_by_.store(kNotFinishing);
  driver_.give_up();
}

/// While it is being stopped, it looks every millisecond: the last results may be on their way in the transport.
bool Engine::has_finished() {
  server_.finish();
  const auto by = Deadline::at(Clock::time_point(Clock::duration(finish_by_.load())));
  const bool has_sent = std::ranges::none_of(peers_, [&](std::uint64_t peer) { return has_unsent(PeerId{peer}); });
  return (server_.is_idle() && has_sent) || by.passed();
}

void Engine::stop() {
  stop_.store(true);
  wake();
}

void Engine::reload() {
  reload_.store(true);
  wake();
}

void Engine::reload_now() {
  reload_.store(false);
  auto config = config_;
  auto status = config.reload();
  if (status.ok()) status = reconfigure(config);
  if (status.ok()) config_ = std::move(config);
  if (status.ok())
    log::info("the configuration was read anew");
  else
    log::error("the configuration stays as it was: {}", status.error().message);
}

Status Engine::reconfigure(const nessie::Config &config) {
  auto settings = read_settings(config, program_);
  if (!settings.ok()) return settings.error();
  if (auto status = server_.operations().reconfigure(config); !status.ok()) return status;
  apply(*settings);
  return {};
}

void Engine::apply(const Settings &settings) {
  timeout_ = settings.timeout;
  reconnect_ = settings.reconnect;
  max_long_bytes_ = settings.max_long_bytes;
  server_.keep_answers_for(settings.keep_answers);
  server_.operations().set_limits(settings.limits);
}

void Engine::set_limits(const Limits &limits) {
  program_.limits = limits;
  server_.operations().set_limits(limits);
}

void Engine::stop_when_done(Deadline deadline) {
  const auto by = deadline.earlier(Deadline::at(Clock::time_point::max() - Clock::duration(1)));
  finish_by_.store(by.when().time_since_epoch().count());
  wake();
}

Deadline Engine::next_expiry() const {
  if (finishes()) return Deadline::in(std::chrono::milliseconds(1));
  const auto next_flush = tracer_ ? tracer_->next_flush() : Deadline::never();
  return scheduler_.next_expiry()
      .earlier(next_flush)
      .earlier(server_.next_expiry())
      .earlier(client_.links().next())
      .earlier(client_.next_expiry());
}

void Engine::drive_until(const std::atomic<bool> &done, Deadline deadline, bool may_give_up) {
  Idleness idleness(*endpoint_);
  for (int turns = 1; !done.load(std::memory_order_acquire); ++turns) {
    const bool idle = idleness.is_long_after(turn());
    if (!idle && turns % kTurnsBetweenChecks != 0) continue;
    if (has_passed(deadline) || (may_give_up && driver_.wanted())) return;
    if (idle && !done.load(std::memory_order_acquire))
      endpoint_->wait(deadline.earlier(next_expiry()), nnti::Waking::kInTurn);
    expire();
  }
}

void Engine::expire() {
  scheduler_.expire();
  server_.expire();
  client_.expire();
  if (tracer_) tracer_->flush_if_due();
}

void Engine::poke() {
  if (Worker::current() != nullptr) return;
  if (Turn turn(driver_); turn && !in_fiber()) {
    this->turn();
    expire();
  }
}

void Engine::wait_until(const std::atomic<bool> &done, Strand *&waiter, Deadline deadline) {
  if (in_drivers_fiber()) return suspend_until(done, waiter, deadline);
  if (Worker::current_strand() != nullptr) return suspend_in_pool(done, waiter, deadline);
  while (!done.load(std::memory_order_acquire)) {
    if (Turn turn(driver_); turn) {
      drive_until(done, deadline, !turn.nested());
    } else {
      driver_.wait_for_turn(done, deadline);
    }
    if (done.load(std::memory_order_acquire) || has_passed(deadline)) break;
  }
  driver_.pass_on();
}

void Engine::suspend_until(const std::atomic<bool> &done, Strand *&waiter, Deadline deadline) {
  waiter = scheduler_.current();
  while (!done.load(std::memory_order_relaxed) && !closing_ && !deadline.passed()) scheduler_.suspend(deadline);
  waiter = nullptr;
}

/// `waiter` is the driver's: it is set and taken back there.
void Engine::suspend_in_pool(const std::atomic<bool> &done, Strand *&waiter, Deadline deadline) {
  run_as_driver([&, self = Worker::current_strand()] { waiter = self; });
  while (!done.load(std::memory_order_acquire) && !closing_ && !deadline.passed()) suspend(deadline);
  if (!done.load(std::memory_order_acquire)) run_as_driver([&] { waiter = nullptr; });
}

TraceContext &Engine::trace_context() {
  static thread_local TraceContext nothing;
  if (auto *strand = current_strand(); strand != nullptr) return strand->trace;
  if (driver_.is_mine()) return drivers_trace_;
  return nothing = {};
}

void Engine::suspend(Deadline deadline) {
  if (auto *worker = Worker::current(); worker != nullptr) return worker->suspend(deadline);
  scheduler_.suspend(deadline);
}

void Engine::wake(Strand *strand) {
  if (strand->home != nullptr) return strand->home->wake(strand);
  scheduler_.wake(strand);
}

Status Engine::add_operation(Operation operation) {
  const Standing program(operation);
  auto pool = settle(operation);
  if (!pool.ok()) return pool.error();
  return server_.operations().add(std::move(operation), program, *pool, counts());
}

Result<Pool *> Engine::settle(Operation &operation) const {
  if (auto status = settle_operation(config_, operation); !status.ok()) return status.error();
  if (operation.pool.empty()) return nullptr;
  if (operation.kind != HandlerKind::kFiber)
    return Error{
        Code::kInvalidArgument,
        fmt::format("the operation {} cannot run in a pool: only handlers of kind kFiber can", operation.name)};
  for (const auto &pool : pools_)
    if (pool->name() == operation.pool) return pool.get();
  return Error{Code::kNotFound,
               fmt::format("there is no pool named {}, which the operation {} is to run in; name it in "
                           "RuntimeOptions::pools or nssi.pools",
                           operation.pool, operation.name)};
}

void Engine::set_done(std::atomic<bool> &done, Strand *waiter) {
  done.store(true, std::memory_order_release);
  if (waiter != nullptr)
    wake(waiter);
  else
    driver_.note_done();
}

void Engine::hand_over_and_wait(const std::function<void()> &work) {
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

void Engine::spawn(std::function<void()> work) {
  if (driver_.is_mine()) return scheduler_.spawn(guarded(std::move(work)));
  hand_over([this, work = guarded(std::move(work))]() mutable { scheduler_.spawn(std::move(work)); });
}

void Engine::post(std::function<void()> work) { hand_over(guarded(std::move(work))); }

/// The work may be done, and the runtime end for it, before the driver is woken: the destructor waits for that.
void Engine::hand_over(std::function<void()> work) {
  const Use use(*this);
  driver_.post(std::move(work));
  wake();
}

// --- peers and messages -----------------------------------------------------------------------------------------------

Result<PeerId> Engine::connect(std::string_view url, Deadline deadline) {
  Result<PeerId> result = Error{Code::kInternal, "not connected"};
  run_as_driver([&] {
    result = endpoint_->connect(url, deadline);
    if (!result.ok()) return;
    add_peer(*result);
    if (reconnect().count() > 0 || operators_) client_.links().add(url, *result);
    if (operators_) client_.introduce(*result);
  });
  return result;
}

void Engine::disconnect(PeerId name) {
  run_as_driver([&] {
    const Error error{Code::kCancelled, "the peer was disconnected", nessie::Scope::kPeer};
    const auto peer = client_.links().connection_of(name);
    if (peer.value != 0) {
      endpoint_->disconnect(peer);
      forget(peer, error, {});
    }
    client_.drop_link(name, error);
  });
}

void Engine::give_up_peer(PeerId peer, const Error &error) {
  endpoint_->disconnect(peer);
  on_peer_lost(peer, error);
}

/// True: it is only its connection that is gone, for a while.
bool Engine::forget(PeerId peer, const Error &error, std::chrono::milliseconds patience) {
  peers_.erase(peer.value);
  outbox_.forget(peer);
  const bool is_retried = client_.on_peer_lost(peer, error, patience);
  server_.on_peer_lost(peer);
  blocks_.forget(peer);
  return is_retried;
}

Status Engine::send_later(PeerId peer, std::span<const std::byte> message) {
  outbox_.add(peer, message);
  return {};
}

/// The endpoint's own queue goes out as its peer takes it; what waits here follows when that is empty.
void Engine::flush_outbox() {
  outbox_.flush([&](PeerId peer) { return !endpoint_->has_unsent(peer); },
                [&](PeerId peer, std::span<const std::byte> message) {
                  return endpoint_->send(peer, message).code() != Code::kBusy;
                });
  for (const auto peer : outbox_.take_overfull())
    if (has_peer(peer))
      give_up_peer(peer, Error{Code::kPeerLost, "the peer does not take what is sent to it, and too much waits for it",
                               nessie::Scope::kPeer});
}

void Engine::on_message(PeerId from, std::span<const std::byte> message) {
  const auto prefix = wire::prefix_of(message);
  if (!prefix) return log::debug("a peer's message was dropped: it is not NSSI's, or of another version of it");
  switch (prefix->kind) {
    case wire::Kind::kWelcome: return client_.on_welcome(from, message);
    case wire::Kind::kHello: return server_.on_hello(from, message);
    case wire::Kind::kProof: return server_.on_proof(from, message);
    case wire::Kind::kRequest: return server_.on_request(from, prefix->id, message);
    case wire::Kind::kResult: return client_.on_result(from, prefix->id, message);
    case wire::Kind::kResultFetched: return server_.on_result_fetched(from, prefix->id);
    case wire::Kind::kCancel: return server_.on_cancel(from, prefix->id);
    case wire::Kind::kCancelled: return client_.on_cancelled(from, prefix->id);
    case wire::Kind::kBusy: return client_.on_busy(from, prefix->id, message);
    case wire::Kind::kInvited: return client_.on_invited(from, message);
  }
}

void Engine::on_peer_connected(PeerId peer) {
  peers_.insert(peer.value);
  if (peer_connected_) do_guarded([&] { peer_connected_(peer); });
}

void Engine::on_peer_lost(PeerId peer, const Error &error) {
  if (!forget(peer, error, closing_ ? std::chrono::milliseconds(0) : reconnect())) tell_peer_lost(peer, error);
}

void Engine::tell_peer_lost(PeerId peer, const Error &error) {
  if (peer_lost_ && !closing_) do_guarded([&] { peer_lost_(peer, error); });
}

}  // namespace nssi

// SPDX-License-Identifier: BSD-3-Clause
#include <nssi/engine.hpp>

#include <nssi/coarse_clock.hpp>

#include <fmt/format.h>

#include <base/log.hpp>

#include <algorithm>
#include <exception>
#include <thread>

namespace nssi {

namespace log = nessie::log;

namespace {

constexpr std::size_t kDefaultMaxLongBytes = std::size_t{1} << 30;
constexpr int kTurnsBetweenChecks = 64;
/// Turns without an event before the transport's own wait begins, which reads clocks: about two microseconds.
constexpr int kIdleTurns = 256;
constexpr int kMaxClosingTurns = 10000;

/// Exceptions stop where a thread or fiber starts.
std::function<void()> guarded(std::function<void()> work) {
  return [work = std::move(work)] {
    try {
      work();
    } catch (const std::exception &e) { log::error("work on the progress thread failed: {}", e.what()); } catch (...) {
      log::error("work on the progress thread failed: an exception of unknown type");
    }
  };
}

}  // namespace

Engine::Engine(const RuntimeOptions &options)
    : scheduler_(options.fiber_stack_bytes, std::max<std::size_t>(options.max_fibers, 1), options.bulk_quiet,
                 options.bulk_longest_hold) {}

Result<std::unique_ptr<Engine>> Engine::open(RuntimeOptions options) {
  std::unique_ptr<Engine> engine(new Engine(options));
  auto timeout = options.endpoint.config.get_duration("nssi.timeout", engine->timeout_);
  if (!timeout.ok()) return timeout.error();
  auto reconnect = options.endpoint.config.get_duration("nssi.reconnect", engine->reconnect_);
  if (!reconnect.ok()) return reconnect.error();
  auto max_long = options.endpoint.config.get_size("nssi.max_long", kDefaultMaxLongBytes);
  if (!max_long.ok()) return max_long.error();
  engine->timeout_ = *timeout;
  engine->reconnect_ = *reconnect;
  engine->max_long_bytes_ = *max_long;
  auto endpoint = nnti::Endpoint::open(std::move(options.endpoint), *engine);
  if (!endpoint.ok()) return endpoint.error();
  engine->endpoint_ = *std::move(endpoint);
  engine->blocks_.use(*engine->endpoint_);
  return engine;
}

Engine::~Engine() {
  if (!endpoint_) return;
  Turn turn(driver_);
  finish_fibers();
  client_.finish_all(Error{Code::kCancelled, "the runtime was destroyed"});
  client_.detach_all();
  server_.forget_all();
  blocks_.close();
  while (handing_over_.load() != 0) std::this_thread::yield();
  endpoint_.reset();
}

/// Lets the fibers run to their ends: whatever they wait for ends with kCancelled.
void Engine::finish_fibers() {
  driver_.do_work();
  flush_unsent();
  closing_ = true;
  while (!peers_.empty()) disconnect(PeerId{*peers_.begin()});
  scheduler_.hasten_last();
  for (int i = 0; scheduler_.unfinished() != 0 && i < kMaxClosingTurns; ++i) {
    scheduler_.wake_all();
    turn();
  }
  if (scheduler_.unfinished() != 0)
    log::error("{} handlers go on waiting although the runtime is being destroyed", scheduler_.unfinished());
}

// --- driving ----------------------------------------------------------------------------------------------------------

bool Engine::turn() {
  bool busy = driver_.do_work();
  busy |= endpoint_->progress() != 0;
  busy |= scheduler_.run_ready();
  if (!unsent_.empty()) flush_unsent();
  if (!client_.links().all_ready()) client_.links().advance();
  return busy;
}

void Engine::run() {
  driver_.take_for_run([this] { wake(); });
  for (int idle = 0, turns = 1; !stop_.load(std::memory_order_relaxed); ++turns) {
    idle = turn() ? 0 : idle + 1;
    if (idle < kIdleTurns && turns % kTurnsBetweenChecks != 0) continue;
    if (idle >= kIdleTurns) endpoint_->wait(next_expiry());
    expire();
  }
  stop_.store(false);
  driver_.give_up();
}

void Engine::stop() {
  stop_.store(true);
  wake();
}

Deadline Engine::next_expiry() const {
  if (!unsent_.empty()) return Deadline::in(std::chrono::milliseconds(1));
  return scheduler_.next_expiry().earlier(server_.next_expiry()).earlier(client_.links().next());
}

void Engine::drive_until(const std::atomic<bool> &done, Deadline deadline, bool may_give_up) {
  for (int idle = 0, turns = 1; !done.load(std::memory_order_acquire); ++turns) {
    idle = turn() ? 0 : idle + 1;
    if (idle < kIdleTurns && turns % kTurnsBetweenChecks != 0) continue;
    if (has_passed(deadline) || (may_give_up && driver_.wanted())) return;
    if (idle >= kIdleTurns && !done.load(std::memory_order_acquire)) endpoint_->wait(deadline.earlier(next_expiry()));
    expire();
  }
}

void Engine::expire() {
  scheduler_.expire();
  server_.expire();
}

void Engine::poke() {
  if (Turn turn(driver_); turn && !in_fiber()) {
    this->turn();
    expire();
  }
}

void Engine::wait_until(const std::atomic<bool> &done, Strand *&waiter, Deadline deadline) {
  if (in_fiber()) return suspend_until(done, waiter, deadline);
  while (!done.load(std::memory_order_acquire)) {
    if (Turn turn(driver_); turn) {
      drive_until(done, deadline, !turn.nested());
    } else {
      driver_.wait_for_turn(done, deadline);
    }
    if (done.load(std::memory_order_acquire) || has_passed(deadline)) return;
  }
}

void Engine::suspend_until(const std::atomic<bool> &done, Strand *&waiter, Deadline deadline) {
  waiter = scheduler_.current();
  while (!done.load(std::memory_order_relaxed) && !closing_ && !deadline.passed()) scheduler_.suspend(deadline);
  waiter = nullptr;
}

void Engine::set_done(std::atomic<bool> &done, Strand *waiter) {
  done.store(true);
  if (waiter != nullptr)
    scheduler_.wake(waiter);
  else
    driver_.notify();
}

void Engine::run_as_driver(const std::function<void()> &work) {
  if (Turn turn(driver_); turn) return work();
  std::atomic<bool> done{false};
  driver_.hand_over([&] {
    work();
    done.store(true);
    driver_.notify();
  });
  wake();
  while (!done.load()) {
    if (Turn turn(driver_); !turn) driver_.wait_for_turn(done, Deadline::never());  // giving a turn up does the work
  }
}

void Engine::spawn(std::function<void()> work) {
  if (driver_.is_mine()) return scheduler_.spawn(guarded(std::move(work)));
  hand_over([this, work = guarded(std::move(work))] { scheduler_.spawn(work); });
}

void Engine::post(std::function<void()> work) { hand_over(guarded(std::move(work))); }

/// The work may be done, and the runtime end for it, before the driver is woken: the destructor waits for that.
void Engine::hand_over(std::function<void()> work) {
  handing_over_.fetch_add(1);
  driver_.post(std::move(work));
  wake();
  handing_over_.fetch_sub(1);
}

// --- peers and messages -----------------------------------------------------------------------------------------------

Result<PeerId> Engine::connect(std::string_view url, Deadline deadline) {
  Result<PeerId> result = Error{Code::kInternal, "not connected"};
  run_as_driver([&] {
    result = endpoint_->connect(url, deadline);
    if (!result.ok()) return;
    add_peer(*result);
    if (reconnect_.count() > 0) client_.links().add(url, *result);
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
  std::erase_if(unsent_, [&](const Unsent &message) { return message.peer == peer; });
  const bool is_retried = client_.on_peer_lost(peer, error, patience);
  server_.on_peer_lost(peer);
  blocks_.forget(peer);
  return is_retried;
}

Status Engine::send(PeerId peer, std::span<const std::byte> message) {
  if (unsent_.empty()) {
    auto status = endpoint_->send(peer, message);
    if (status.code() != Code::kBusy) return status;
  }
  unsent_.push_back({peer, Bytes(message.begin(), message.end())});
  return {};
}

/// Messages that the transport's queue had no room for, in their order.
void Engine::flush_unsent() {
  while (!unsent_.empty()) {
    auto &oldest = unsent_.front();
    if (endpoint_->send(oldest.peer, oldest.message).code() == Code::kBusy) return;
    unsent_.pop_front();
  }
}

void Engine::on_message(PeerId from, std::span<const std::byte> message) {
  const auto prefix = wire::prefix_of(message);
  if (!prefix) return log::debug("a peer's message was dropped: it is not NSSI's, or of another version of it");
  switch (prefix->kind) {
    case wire::Kind::kWelcome: return client_.on_welcome(from, message);
    case wire::Kind::kHello: return server_.on_hello(from, message);
    case wire::Kind::kRequest: return server_.on_request(from, prefix->id, message);
    case wire::Kind::kResult: return client_.on_result(from, prefix->id, message);
    case wire::Kind::kResultFetched: return server_.on_result_fetched(from, prefix->id);
    case wire::Kind::kCancel: return server_.on_cancel(from, prefix->id);
    case wire::Kind::kCancelled: return client_.on_cancelled(from, prefix->id);
  }
}

void Engine::on_peer_connected(PeerId peer) {
  peers_.insert(peer.value);
  if (peer_connected_) peer_connected_(peer);
}

void Engine::on_peer_lost(PeerId peer, const Error &error) {
  if (!forget(peer, error, closing_ ? std::chrono::milliseconds(0) : reconnect_)) tell_peer_lost(peer, error);
}

void Engine::tell_peer_lost(PeerId peer, const Error &error) {
  if (peer_lost_ && !closing_) peer_lost_(peer, error);
}

}  // namespace nssi

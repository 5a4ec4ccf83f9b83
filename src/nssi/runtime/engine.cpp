// SPDX-License-Identifier: BSD-3-Clause
#include <nssi/runtime/engine.hpp>

#include <fmt/format.h>

#include <base/log.hpp>

#include <algorithm>

namespace nssi {

namespace log = nessie::log;

Result<std::unique_ptr<Engine>> Engine::open(RuntimeOptions options) {
  if (auto status = options.endpoint.config.complete(); !status.ok()) return status.error();
  std::unique_ptr<Engine> engine(new Engine(options));
  engine->program_.limits = options.limits;
  engine->program_.pools = options.pools;
  auto settings = read_settings(options.endpoint.config, engine->program_);
  if (!settings.ok()) return settings.error();
  engine->apply(*settings);
  engine->prometheus_ = settings->prometheus;
  engine->config_ = options.endpoint.config;
  const bool must_reload = options.reload_on_hangup;
  const bool may_reload = must_reload || (options.endpoint.listen && settings->reload_on_hangup);
  if (auto status = engine->Core::open(std::move(options), *settings, *engine); !status.ok()) return status.error();
  if (may_reload) {
    auto hangup = Hangup::watch(*engine);
    if (hangup.ok())
      engine->hangup_ = *std::move(hangup);
    else if (must_reload)
      return hangup.error();
  }
  return engine;
}

bool Engine::close() {
  hangup_.reset();
  if (!driver().is_mine()) driver().take_for_run([this] { wake(); });
  const auto until = Deadline::in(timeout());
  finish_fibers(until);
  client_.finish_all(Error{Code::kCancelled, "the runtime was destroyed"});
  finish_fibers(until);  // of those who were called back therefore
  return !has_pool_work();
}

Engine::~Engine() {
  if (!is_open()) return;
  if (!closing()) close();
  end_pools();
  client_.detach_all();
  server_.forget_all();
  client_.links().stop_connecting();
  close_endpoint();
}

// --- driving ----------------------------------------------------------------------------------------------------------

void Engine::run() {
  driver().take_for_run([this] { wake(); });
  if (!finishes()) server_.begin_anew();
  drive_until(stop_, Deadline::never(), nnti::Waking::kAtOnce, [this] {
    if (reload_.load(std::memory_order_relaxed)) reload_now();
    return finishes() && has_finished();
  });
  stop_.store(false);
  finish_by_.store(kNotFinishing);
  driver().give_up();
}

/// While it is being stopped, it looks every millisecond: the last results may be on their way in the transport.
bool Engine::has_finished() {
  server_.finish();
  const auto by = Deadline::at(Clock::time_point(Clock::duration(finish_by_.load())));
  const bool has_sent = std::ranges::none_of(peers(), [&](std::uint64_t peer) { return has_unsent(PeerId{peer}); });
  return (server_.is_idle() && has_sent) || by.passed();
}

void Engine::stop() {
  stop_.store(true);
  wake();
}

void Engine::on_hangup() {
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
  wake();  // for a turn: there may be room for those who wait
}

Status Engine::reconfigure(const nessie::Config &config) {
  auto settings = read_settings(config, program_);
  if (!settings.ok()) return settings.error();
  if (auto status = server_.operations().reconfigure(config); !status.ok()) return status;
  apply(*settings);
  return {};
}

void Engine::apply(const Settings &settings) {
  Core::apply(settings);
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
  server_.refuse_from_now();
  wake();
}

void Engine::on_turn() {
  server_.invite();
  client_.links().advance();
}

void Engine::on_expiry() {
  server_.expire();
  client_.expire();
}

Deadline Engine::next_deadline() const {
  if (finishes()) return Deadline::in(std::chrono::milliseconds(1));
  return server_.next_expiry().earlier(client_.links().next()).earlier(client_.next_expiry());
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
  if (auto *pool = pool_named(operation.pool); pool != nullptr) return pool;
  return Error{Code::kNotFound,
               fmt::format("there is no pool named {}, which the operation {} is to run in; name it in "
                           "RuntimeOptions::pools or nssi.pools",
                           operation.pool, operation.name)};
}

// --- peers and messages -----------------------------------------------------------------------------------------------

Result<PeerId> Engine::connect(std::string_view url, Deadline deadline, const std::stop_token &stop) {
  Result<PeerId> result = Error{Code::kInternal, "not connected"};
  run_as_driver([&] {
    result = endpoint().connect(url, deadline, stop);
    if (!result.ok()) return;
    add_peer(*result);
    if (reconnect().count() > 0 || operators()) client_.links().add(url, *result);
    if (operators()) client_.introduce(*result);
  });
  return result;
}

void Engine::disconnect(PeerId name) {
  run_as_driver([&] {
    const Error error{Code::kCancelled, "the peer was disconnected", nessie::Scope::kPeer};
    const auto peer = client_.links().connection_of(name);
    if (peer.value != 0) drop_peer(peer, error);
    client_.drop_link(name, error);
  });
}

void Engine::flush_trace() {
  run_as_driver([&] {
    if (tracer() != nullptr) tracer()->flush();
  });
}

bool Engine::on_dropped(PeerId peer, const Error &error, std::chrono::milliseconds patience) {
  const bool is_retried = client_.on_peer_lost(peer, error, patience);
  server_.on_peer_lost(peer);
  return is_retried;
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
  add_peer(peer);
  tell_peer_connected(peer);
}

void Engine::on_peer_lost(PeerId peer, const Error &error) { lose_peer(peer, error); }

}  // namespace nssi

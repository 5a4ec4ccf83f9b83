// SPDX-License-Identifier: BSD-3-Clause
#include <base/log.hpp>
#include <nssi/drive/event.hpp>
#include <nssi/observe/inspection.hpp>
#include <nssi/observe/page_server.hpp>
#include <nssi/observe/prometheus.hpp>
#include <nssi/runtime/engine.hpp>

#include <algorithm>

namespace nssi {

Runtime::Runtime(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {}
Runtime::~Runtime() {
  if (engine_->birth().was_here()) {
    page_.reset();
    if (engine_->close()) return;
    nessie::log::error(
        "handlers in pools' threads have not ended within nssi.timeout, and are left behind with what they use; "
        "a handler must not block for ever");
  }
  nessie::leave(std::move(page_));
  nessie::leave(std::move(engine_));
  nessie::leave(std::move(inspection_));
}

Result<std::unique_ptr<Runtime>> Runtime::open(RuntimeOptions options) {
  const bool serves = options.endpoint.listen;
  auto engine = Engine::open(std::move(options));
  if (!engine.ok()) return engine.error();
  std::unique_ptr<Runtime> runtime(new Runtime(*std::move(engine)));
  if (!serves) return runtime;
  if (auto status = runtime->show(); !status.ok()) return status.error();
  return runtime;
}

/// Answers those who ask what is counted.
Status Runtime::show() {
  auto inspection = offer_inspection(*this);
  if (!inspection.ok()) return inspection.error();
  inspection_ = *std::move(inspection);
  if (engine_->prometheus().empty()) return {};
  auto page = PageServer::open(engine_->prometheus(),
                               {"/metrics", kPrometheusContentType, [this] { return to_prometheus(statistics()); }});
  if (!page.ok()) {
    auto error = page.error();
    error.message = "nssi.prometheus: " + error.message;
    return error;
  }
  page_ = *std::move(page);
  return {};
}

const std::string &Runtime::url() const { return engine_->endpoint().url(); }
nnti::Endpoint &Runtime::endpoint() { return engine_->endpoint(); }

Status Runtime::add_operation(Operation operation) {
  Status status;
  engine_->run_as_driver([&] { status = engine_->add_operation(std::move(operation)); });
  return status;
}

void Runtime::set_limits(const Limits &limits) {
  engine_->run_as_driver([&] { engine_->set_limits(limits); });
}

Status Runtime::set_limits(const Interface &interface, std::uint32_t provider, const Limits &limits) {
  Status status;
  engine_->run_as_driver([&] { status = engine_->server().operations().set_limits(interface, provider, limits); });
  return status;
}

std::vector<Service> Runtime::services() const {
  std::vector<Service> all;
  engine_->run_as_driver([&] {
    for (const auto &admission : engine_->server().operations().admissions())
      if (!is_inspection(admission->service().interface)) all.push_back(admission->service());
  });
  return all;
}

std::optional<std::string> Runtime::setting(const std::string &name) const {
  std::optional<std::string> value;
  engine_->run_as_driver([&] { value = engine_->config().get(name); });
  return value;
}

Statistics Runtime::statistics() {
  Statistics result;
  engine_->run_as_driver([&] { result = engine_->statistics(); });
  if (page_) result.prometheus = page_->address();
  return result;
}

void Runtime::on_peer_connected(std::function<void(PeerId)> callback) {
  engine_->add_on_peer_connected(std::move(callback));
}

void Runtime::on_peer_lost(std::function<void(PeerId, const Error &)> callback) {
  engine_->add_on_peer_lost(std::move(callback));
}

Status Runtime::reconfigure(const nessie::Config &config) {
  Status status;
  engine_->run_as_driver([&] { status = engine_->reconfigure(config); });
  return status;
}

void Runtime::run() { engine_->run(); }
void Runtime::stop() { engine_->stop(); }
void Runtime::stop_when_done(Deadline deadline) { engine_->stop_when_done(deadline); }
void Runtime::spawn(std::function<void()> work) { engine_->spawn(std::move(work)); }
void Runtime::post(std::function<void()> work) { engine_->post(std::move(work)); }
void Runtime::flush_trace() { engine_->flush_trace(); }
void Runtime::hasten_bulk() { engine_->scheduler().hasten_last(); }
bool Runtime::in_fiber() const { return engine_->in_fiber(); }
const void *Runtime::current_fiber() const { return engine_->current_strand(); }

void Runtime::sleep_until(Deadline deadline) {
  if (!engine_->in_fiber()) {
    const std::atomic<bool> never{false};
    Strand *waiter = nullptr;
    return engine_->wait_until(never, waiter, deadline);
  }
  while (!deadline.passed() && !engine_->closing()) engine_->suspend(deadline);
}

Result<PeerId> Runtime::connect(std::string_view url, Deadline deadline, const std::stop_token &stop) {
  return engine_->connect(url, deadline, stop);
}
void Runtime::disconnect(PeerId peer) {
  if (engine_->birth().was_here()) engine_->disconnect(peer);
}

std::size_t Runtime::max_inline_args(PeerId service) {
  std::size_t bytes = 0;
  engine_->run_as_driver([&] { bytes = engine_->max_inline_args(engine_->client().links().connection_of(service)); });
  return bytes;
}

bool Runtime::can_view(PeerId peer) {
  bool can = false;
  engine_->run_as_driver([&] { can = engine_->endpoint().can_view(engine_->client().links().connection_of(peer)); });
  return can;
}

Status Runtime::give_descriptor(PeerId peer, std::uint64_t key, int descriptor) {
  Status given;
  engine_->run_as_driver([&] {
    given = engine_->endpoint().give_descriptor(engine_->client().links().connection_of(peer), key, descriptor);
  });
  return given;
}

Result<int> Runtime::take_descriptor(PeerId peer, std::uint64_t key) {
  Result<int> taken = Error{};
  engine_->run_as_driver(
      [&] { taken = engine_->endpoint().take_descriptor(engine_->client().links().connection_of(peer), key); });
  return taken;
}

bool Runtime::can_give_descriptors(PeerId peer) {
  bool can = false;
  engine_->run_as_driver(
      [&] { can = engine_->endpoint().can_give_descriptors(engine_->client().links().connection_of(peer)); });
  return can;
}

Result<pid_t> Runtime::process_of(PeerId peer) {
  Result<pid_t> process = Error{};
  engine_->run_as_driver(
      [&] { process = engine_->endpoint().process_of(engine_->client().links().connection_of(peer)); });
  return process;
}

bool Runtime::has_unsent(PeerId peer) {
  bool has = false;
  engine_->run_as_driver([&] { has = engine_->has_unsent(engine_->client().links().connection_of(peer)); });
  return has;
}

Result<nnti::RegisteredBuffer> Runtime::register_memory(std::span<std::byte> memory, nnti::Rights rights) {
  Result<nnti::RegisteredBuffer> result = Error{};
  engine_->run_as_driver([&] { result = engine_->endpoint().register_memory(memory, rights); });
  return result;
}

Result<nnti::RegisteredBuffer> Runtime::allocate(std::size_t size_bytes, nnti::Rights rights) {
  Result<nnti::RegisteredBuffer> result = Error{};
  engine_->run_as_driver([&] { result = engine_->endpoint().allocate(size_bytes, rights); });
  return result;
}

void Runtime::unregister_memory(nnti::RegisteredBuffer buffer) {
  engine_->run_as_driver([&] { buffer.reset(); });
}

Call Runtime::call(const Service &service, OpCode op, std::span<const std::byte> args, const CallOptions &options) {
  return Call(engine_->client().start(service, op, Payload(args), options));
}

Call Runtime::call(const Service &service, OpCode op, std::size_t size_bytes, const Encoder &encode,
                   const CallOptions &options) {
  return Call(engine_->client().start(service, op, Payload(size_bytes, encode), options));
}

std::vector<Call> Runtime::multicast(std::span<const Service> services, OpCode op, std::span<const std::byte> args,
                                     const CallOptions &options) {
  std::vector<Call> calls;
  calls.reserve(services.size());
  for (const auto &service : services) calls.push_back(call(service, op, args, options));
  return calls;
}

// --- Event ------------------------------------------------------------------------------------------------------------

Event::Event(Runtime &runtime) : state_(new EventState{*runtime.engine_, {}, {}}) {}
Event::~Event() = default;

void Event::set() {
  auto state = state_;  // the event may be gone as soon as its waiter sees it set
  const Core::Use use(state->core);
  state->set.store(true);
  if (state->core.driver().is_mine()) return state->wake_all();
  state->core.post([state] { state->wake_all(); });
}

Status Event::wait(Deadline deadline) { return state_->wait(deadline, NoOtherInterest()); }

}  // namespace nssi

// SPDX-License-Identifier: BSD-3-Clause
// An open transport of the C interface: its lock and waiting threads, and its peers.
#include "nnti/c_api_transport.hpp"

#include <base/log.hpp>
#include <base/url.hpp>

#include <algorithm>

namespace nnti::c_api {

namespace {

constexpr std::size_t kMaxOutbox = 65536;

/// "ofi://10.0.0.1?provider=tcp" says where to listen, as settings of that transport.
Status apply_url(const char *text, nessie::Config &config) {
  if (text == nullptr || *text == '\0') return {};
  auto url = nessie::Url::parse(text);
  if (!url.ok()) return url.error();
  if (!url->address.empty()) config.set("nnti." + url->transport + ".address", url->address);
  for (const auto &[key, value] : url->query) config.set("nnti." + url->transport + "." + key, value);
  return {};
}

Result<EndpointOptions> options_for(NNTI_transport_id_t id, const char *url) {
  auto config = nessie::Config::load();
  if (!config.ok()) return config.error();
  EndpointOptions options;
  options.config = std::move(*config);
  if (auto status = apply_url(url, options.config); !status.ok()) return status.error();
  options.transports = *transports_of(id);
  if (auto hex = options.config.get("credential")) {
    auto credential = nessie::Credential::from_hex(*hex);
    if (!credential.ok()) return credential.error();
    options.credential = *credential;
  }
  return options;
}

bool lists(std::string_view urls, std::string_view url) {
  if (url.empty()) return false;
  for (std::size_t begin = 0; begin <= urls.size();) {
    const std::size_t end = std::min(urls.find(';', begin), urls.size());
    if (urls.substr(begin, end - begin) == url) return true;
    begin = end + 1;
  }
  return urls == url;
}

}  // namespace

std::variant<std::shared_ptr<CTransport>, Outcome> CTransport::open(NNTI_transport_id_t id, const char *url) {
  if (!transports_of(id)) return Outcome(NNTI_ENOTSUP, "Nessie has no such transport; use NNTI_DEFAULT_TRANSPORT");
  auto options = options_for(id, url);
  if (!options.ok()) return Outcome(options.error());
  std::shared_ptr<CTransport> self(new CTransport(nessie::random_u64() | 1));
  auto endpoint = Endpoint::open(std::move(*options), *self);
  if (!endpoint.ok()) return Outcome(endpoint.error());
  self->endpoint_ = std::move(*endpoint);
  self->id_ = id;
  if (self->url().size() >= NNTI_URL_LEN) return Outcome(NNTI_ENOTSUP, "the URLs of this transport are too long");
  self->me_ = peer_to_c({}, self->url(), self->instance());
  return self;
}

CTransport::CTransport(std::uint64_t instance) { me_ = peer_to_c({}, {}, instance); }

CTransport::~CTransport() {
  if (endpoint_) close();
}

// --- the lock and the waiting threads ---------------------------------------------------------------------------------

CTransport::Guard CTransport::lock() {
  Guard guard(mutex_);
  claim(guard);
  return guard;
}

void CTransport::claim(Guard &guard) {
  if (!blocked_) return;
  ++claims_;
  endpoint_->wake();
  unblocked_.wait(guard, [this] { return !blocked_; });
  if (--claims_ == 0) claims_done_.notify_all();
}

void CTransport::block(Guard &guard, Deadline deadline) {
  if (driven_) {
    if (deadline.is_never())
      turned_.wait(guard);
    else
      turned_.wait_until(guard, deadline.when());
    return claim(guard);
  }
  driven_ = blocked_ = true;
  guard.unlock();
  endpoint_->wait(deadline);
  guard.lock();
  blocked_ = false;
  unblocked_.notify_all();
  claims_done_.wait(guard, [this] { return claims_ == 0; });
  driven_ = false;
}

void CTransport::turn() {
  const std::size_t handled = endpoint_->progress();
  settle();
  if (handled > 0) turned_.notify_all();
}

Outcome CTransport::wait_until(Guard &guard, Deadline deadline, const std::function<std::optional<Outcome>()> &check) {
  ++inside_;
  std::optional<Outcome> outcome = check();
  while (!outcome) {
    turn();
    outcome = check();
    if (outcome) break;
    if (closed_)
      outcome = Outcome(NNTI_ECANCELED, "the transport was closed");
    else if (deadline.passed())
      outcome = Outcome(NNTI_ETIMEDOUT, "the time passed; the operation goes on and can be waited for again");
    else
      block(guard, deadline);
  }
  --inside_;
  turned_.notify_all();
  if (closed_) left_.notify_all();
  return *outcome;
}

void CTransport::settle() {
  do {
    for (auto &[operation, status] : std::exchange(finished_, {})) finish(operation, result_of(status.code()));
    for (auto &[peer, error] : std::exchange(lost_, {})) forget_peer(peer, NNTI_EPEERLOST);
    flush_outbox();
  } while (!finished_.empty() || !lost_.empty());
}

void CTransport::close() {
  auto guard = lock();
  closed_ = true;
  turned_.notify_all();
  left_.wait(guard, [this] { return inside_ == 0; });
  std::vector<std::uint64_t> ids;
  for (const auto &[id, peer] : peers_) ids.push_back(id);
  for (const auto id : ids) endpoint_->disconnect({id});
  buffers_.clear();
  for (auto &[id, operation] : operations_) operation->exposed.reset();
  endpoint_.reset();
  operations_.clear();
}

// --- peers ------------------------------------------------------------------------------------------------------------

CTransport::Peer *CTransport::find_peer(PeerId id) {
  auto found = peers_.find(id.value);
  return found == peers_.end() ? nullptr : &found->second;
}

std::optional<PeerId> CTransport::find_instance(std::uint64_t instance) const {
  auto found = by_instance_.find(instance);
  if (found == by_instance_.end()) return std::nullopt;
  return found->second;
}

Status CTransport::say(PeerId to, Kind kind, const Control &fields, std::span<const std::byte> payload) {
  Control control = fields;
  control.kind = kind;
  std::vector<std::byte> message(sizeof control + payload.size());
  std::memcpy(message.data(), &control, sizeof control);
  if (!payload.empty()) std::memcpy(message.data() + sizeof control, payload.data(), payload.size());
  return endpoint_->send(to, message);
}

/// For answers, which nobody would repeat: kept here while the endpoint's queue is full.
void CTransport::say_surely(PeerId to, Kind kind, const Control &fields, std::span<const std::byte> payload) {
  if (outbox_.empty()) {
    auto status = say(to, kind, fields, payload);
    if (status.code() != Code::kBusy) return;
  }
  if (outbox_.size() >= kMaxOutbox) return reject(to, "it takes no answers");
  Control control = fields;
  control.kind = kind;
  std::vector<std::byte> message(sizeof control);
  std::memcpy(message.data(), &control, sizeof control);
  message.insert(message.end(), payload.begin(), payload.end());
  outbox_.emplace_back(to, std::move(message));
}

void CTransport::flush_outbox() {
  while (!outbox_.empty()) {
    auto &[to, message] = outbox_.front();
    if (endpoint_->send(to, message).code() == Code::kBusy) return;
    outbox_.pop_front();
  }
}

Status CTransport::greet(PeerId id) {
  auto &peer = peers_[id.value];
  if (peer.greeted) return {};
  peer.greeted = true;
  Control control;
  control.buffer = instance();
  return say(id, Kind::kHello, control, std::as_bytes(std::span(url())));
}

void CTransport::on_hello(PeerId from, const Control &control, std::span<const std::byte> url) {
  auto &peer = peers_[from.value];
  if (peer.instance != 0 || control.buffer == 0 || control.buffer == instance() || url.size() >= NNTI_URL_LEN)
    return reject(from, "its greeting makes no sense");
  peer.instance = control.buffer;
  const std::string_view text(reinterpret_cast<const char *>(url.data()), url.size());
  peer.handle = std::make_shared<NNTI_peer_t>(peer_to_c(from, text, control.buffer));
  by_instance_.try_emplace(control.buffer, from);
  if (!greet(from).ok()) reject(from, "it takes no answer");
}

/// Ends the connection to a peer that broke the rules.
void CTransport::reject(PeerId id, const char *why) {
  nessie::log::warning("NNTI: closed the connection to a peer: {}", why);
  endpoint_->disconnect(id);
  lost_.emplace_back(id, Error{Code::kBadMessage, why, nessie::Scope::kPeer, 0});
}

void CTransport::forget_peer(PeerId id, NNTI_result_t result) {
  fail_operations_with(id, result);
  std::erase_if(outbox_, [id](const auto &entry) { return entry.first == id; });
  std::erase_if(descriptions_, [id](const auto &entry) { return entry.first.peer == id.value; });
  std::erase_if(asked_, [id](const auto &entry) { return entry.first.peer == id.value; });
  std::erase_if(by_instance_, [id](const auto &entry) { return entry.second == id; });
  peers_.erase(id.value);
  for (auto &[buffer_id, buffer] : buffers_) {
    if (!buffer.inbox) continue;
    buffer.inbox->forget(id);
    pump(buffer);
  }
}

Outcome CTransport::connect(const std::string &text, int timeout_ms, NNTI_peer_t *handle) {
  const auto deadline = Deadline::from_ms(timeout_ms);
  auto guard = lock();
  if (closed_) return {NNTI_ENOTINIT, "the transport is closed"};
  if (lists(url(), text)) return {NNTI_EINVAL, "a process cannot connect to its own URL"};
  for (const auto &[id, peer] : peers_) {
    if (!peer.handle || !lists(peer.handle->url, text)) continue;
    *handle = *peer.handle;
    return {};
  }
  if (timeout_ms == 0) return {NNTI_ETIMEDOUT, "the peer is not connected yet; give NNTI_connect time to connect"};
  auto connected = endpoint_->connect(text, deadline);
  settle();
  if (!connected.ok()) return connected.error();
  const PeerId id = *connected;
  if (auto status = greet(id); !status.ok()) return status.error();
  Outcome outcome = wait_until(guard, deadline, [&]() -> std::optional<Outcome> {
    const Peer *peer = find_peer(id);
    if (peer == nullptr) return Outcome(NNTI_EPEERLOST, "the peer closed the connection at once");
    if (peer->instance == 0) return std::nullopt;
    *handle = *peer->handle;
    return Outcome();
  });
  if (outcome.result == NNTI_ETIMEDOUT) {
    endpoint_->disconnect(id);
    forget_peer(id, NNTI_ECANCELED);
    outcome.message = "the peer accepted the connection but does not answer; is it inside NNTI_wait?";
  }
  settle();
  return outcome;
}

Outcome CTransport::disconnect(std::uint64_t instance) {
  auto guard = lock();
  if (closed_) return {NNTI_ENOTINIT, "the transport is closed"};
  auto id = find_instance(instance);
  if (!id) return {NNTI_ENOENT, "the peer is not connected"};
  endpoint_->disconnect(*id);
  for (auto &[operation, status] : std::exchange(finished_, {})) finish(operation, result_of(status.code()));
  forget_peer(*id, NNTI_ECANCELED);
  settle();
  turned_.notify_all();
  return {};
}

}  // namespace nnti::c_api

// SPDX-License-Identifier: BSD-3-Clause
// The endpoint owns the transports, routes to them by PeerId, and keeps what waits for credits.
#include "nnti/bootstrap/bootstrap.hpp"
#include "nnti/channel/transport.hpp"
#include "nnti/endpoint/impl.hpp"
#include "nnti/sealing/transport.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <unistd.h>
#include <base/log.hpp>

#include <algorithm>
#include <array>
#include <cstring>

namespace nnti {
namespace {

constexpr unsigned kTurnsPerLook = 256;  ///< at the descriptors; a power of two

Error no_peer(PeerId peer) {
  return {Code::kPeerLost, fmt::format("there is no peer {} any more", peer.value), nessie::Scope::kPeer};
}

std::string names_of(std::span<const TransportKind> kinds) {
  std::vector<std::string_view> names;
  for (const auto &kind : kinds) names.push_back(kind.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

bool can_hold(const RemoteBuffer &remote, std::uint64_t offset, std::size_t size_bytes) {
  return offset <= remote.size_bytes && size_bytes <= remote.size_bytes - offset;
}

Error outside(const RemoteBuffer &remote, std::uint64_t offset, std::size_t size_bytes) {
  return {Code::kOutOfRange, fmt::format("bytes {} to {} lie outside the registered buffer of {} bytes", offset,
                                         offset + size_bytes, remote.size_bytes)};
}

/// nnti.encrypt: `off`; `network`, what may leave this node; `all`.
Result<std::unique_ptr<Transport>> open_sealed_if_asked(const TransportKind &kind, const TransportOptions &options) {
  const auto what = options.config.get_or("nnti.encrypt", "off");
  if (what != "off" && what != "network" && what != "all")
    return options.config.bad_value("nnti.encrypt", "off, network or all");
  const bool seal = what == "all" || (what == "network" && kind.crosses_hosts);
  if (seal && kind.reliability == Reliability::kLossy)
    return Error{Code::kInvalidArgument, "nnti.encrypt goes over real networks only, not over faulty ones"};
  if (seal) return sealing::open(options, kind.open);
  return kind.open(options);
}

/// With a channel around it if it may lose messages, so that nobody above ever sees that.
Result<std::unique_ptr<Transport>> open_reliably(const TransportKind &kind, const TransportOptions &options) {
  auto open_inner = [&](const TransportOptions &inner) { return open_sealed_if_asked(kind, inner); };
  if (kind.reliability != Reliability::kAlways) return channel::open(options, kind.reliability, open_inner);
  auto transport = open_inner(options);
  if (!transport.ok() || (*transport)->reliability() == Reliability::kAlways) return transport;
  return Error{Code::kInternal, fmt::format("the transport {} is listed with another reliability", kind.name)};
}

}  // namespace

void PeerView::release_pages() const {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes_.data()) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(bytes_.data() + bytes_.size());
  if (begin < end) ::madvise(reinterpret_cast<void *>(begin), end - begin, MADV_DONTNEED);
}

// --- inside -----------------------------------------------------------------------------------------------------------

Endpoint::Impl::Impl(EndpointOptions endpoint_options, EventSink &event_sink)
    : options(std::move(endpoint_options)), sink(event_sink) {}

Endpoint::Impl::~Impl() {
  for (auto *buffer : buffers) {
    if (buffer->outlives_endpoint)
      for (auto &[transport, memory] : buffer->registrations) memory->keep();
    buffer->registrations.clear();
    buffer->endpoint = nullptr;
  }
  for (auto &peer : peers)
    if (auto dropped = std::move(peer)) dropped->connection->close();
  transports.clear();
}

Status Endpoint::Impl::open_transports() {
  if (poller.fd() < 0) return bootstrap::no_descriptors();
  auto queue = options.config.get_int("nnti.send_queue", kDefaultSendQueue);
  if (!queue.ok()) return queue.error();
  auto spin_us = options.config.get_int("nnti.spin_us", kDefaultSpinMicroseconds);
  if (!spin_us.ok()) return spin_us.error();
  auto eager_memory = options.config.get_size("nnti.eager_memory", kDefaultEagerMemory);
  if (!eager_memory.ok()) return eager_memory.error();
  eager_blocks.configure(*eager_memory);
  queue_limit = static_cast<std::size_t>(std::max<std::int64_t>(*queue, 1));
  waiter.configure(std::chrono::microseconds(std::clamp<std::int64_t>(*spin_us, 0, 1'000'000)));
  if (auto status = choose_transports(); !status.ok()) return status;
  // The others are opened when a URL asks for them: looking for fabrics takes a tenth of a second.
  const auto due = [this](const TransportKind &kind) { return options.listen || kind.at_once; };
  for (auto kind = std::ranges::find_if(unopened, due); kind != unopened.end();
       kind = std::ranges::find_if(unopened, due))
    if (auto status = open_transport(*kind, options.listen, !options.transports.empty()); !status.ok()) return status;
  if (options.listen && transports.empty())
    return Error{Code::kUnsupported, "no transport can be opened on this machine; `nessie info` says why"};
  return {};
}

Status Endpoint::Impl::choose_transports() {
  const auto kinds = known_kinds(options.extra_transports);
  for (const auto &name : options.transports) {
    auto kind = find_transport_kind(name, kinds);
    if (!kind)
      return Error{Code::kUnsupported,
                   fmt::format("no transport is called '{}'; there are: {}", name, names_of(kinds))};
    unopened.push_back(*kind);
  }
  if (options.transports.empty()) unopened.assign(transport_list().begin(), transport_list().end());
  return {};
}

// What the application did not name may be missing.
Status Endpoint::Impl::open_transport(TransportKind kind, bool listen, bool is_named) {
  std::erase_if(unopened, [&](const TransportKind &other) { return other.name == kind.name; });
  auto transport = open_reliably(kind, {options.credential,
                                        options.config,
                                        *this,
                                        poller,
                                        listen,
                                        kind.name,
                                        {},
                                        options.extra_transports,
                                        false,
                                        is_named});
  if (transport.code() == Code::kNoResult) {  // until a URL names it
    unwanted.push_back(kind);
    return {};
  }
  if (!transport.ok()) return not_opened(kind, listen, transport.error());
  if (auto address = (*transport)->url(); !address.empty()) url += url.empty() ? address : ';' + address;
  waiter.add(**transport);
  transports.push_back(std::move(*transport));
  return {};
}

Status Endpoint::Impl::not_opened(const TransportKind &kind, bool listen, const Error &why) {
  const bool is_away = why.code == Code::kPeerLost;
  if (is_away)
    unwanted.push_back(kind);  // a URL that names it tries again
  else
    unopenable.emplace(kind.name, why.message);
  const auto place = listen ? place_to_listen(options.config, kind.name) : std::optional<nessie::Url>();
  const bool is_expected = !options.transports.empty() || (place.ok() && *place) || (is_away && !listen);
  if (is_expected || why.code == Code::kInvalidArgument) return why;
  return {};
}

/// The transport of that name, opened now if need be; null if it cannot be, or was not asked for.
Result<Transport *> Endpoint::Impl::transport_named(std::string_view name) {
  for (auto *kinds : {&unopened, &unwanted}) {
    auto kind = std::ranges::find(*kinds, name, &TransportKind::name);
    if (kind == kinds->end()) continue;
    const auto named = *kind;
    kinds->erase(kind);
    if (auto status = open_transport(named, options.listen && kinds == &unopened, true); !status.ok())
      return status.error();
  }
  auto found = std::ranges::find(transports, name, [](const auto &transport) { return transport->name(); });
  return found == transports.end() ? nullptr : found->get();
}

/// The names of our transports, opened or not, in order of preference.
std::vector<std::string> Endpoint::Impl::preferences() const {
  if (!options.transports.empty()) return options.transports;
  std::vector<std::string> names;
  for (const auto &kind : transport_list()) names.emplace_back(kind.name);
  return names;
}

PeerId Endpoint::Impl::add_peer(Connection &connection) {
  peers.push_back(std::make_unique<Peer>());
  peers.back()->connection = &connection;
  connection.peer = PeerId{peers.size()};
  return connection.peer;
}

Endpoint::Impl::Peer *Endpoint::Impl::find(PeerId peer) const {
  auto index = peer.value - 1;  // 0 wraps to far beyond
  return index < peers.size() ? peers[index].get() : nullptr;
}

Connection *Endpoint::Impl::remove(PeerId peer) {
  auto *known = find(peer);
  if (known == nullptr) return nullptr;
  auto *connection = known->connection;
  peers[peer.value - 1].reset();
  eager_blocks.forget(peer);
  std::erase(waiting_for_credits, peer);
  return connection;
}

Status Endpoint::Impl::enqueue(PeerId id, Peer &peer, MessageKind kind, std::span<const std::byte> message) {
  if (peer.queue.size() >= queue_limit)
    return Error{
        Code::kBusy,
        fmt::format("{} messages wait for a peer that does not take them; send later, or raise nnti.send_queue",
                    peer.queue.size())};
  if (peer.queue.empty()) waiting_for_credits.push_back(id);
  peer.queue.push_back({kind, {message.begin(), message.end()}, 0});
  return {};
}

/// A message of the application's, however large.
Status Endpoint::Impl::send_message(PeerId id, Peer &peer, std::span<const std::byte> message) {
  if (peer.queue.empty()) {
    if (message.size() <= peer.connection->max_message_bytes()) {
      if (peer.connection->try_send(MessageKind::kUser, message)) [[likely]]
        return {};
    } else if (peer.connection->maps_memory() && send_block(id, peer, message)) {
      return {};
    }
  }
  auto queued = enqueue(id, peer, MessageKind::kUser, message);
  if (queued.ok() && peer.queue.size() == 1) flush_queue(id);
  return queued;
}

/// False: not now; no block is free, or there are no credits for its notice.
bool Endpoint::Impl::send_block(PeerId id, Peer &peer, std::span<const std::byte> message) {
  auto block = eager_blocks.fill(*self, id, message);
  if (block == EagerBlocks::kNone) return false;
  if (auto notice = eager_blocks.notice(block); notice && peer.connection->try_send(MessageKind::kEager, *notice))
    return true;
  eager_blocks.take_back(block);
  return false;
}

/// Sends as much of `queued` as can be sent now. True: all of it.
bool Endpoint::Impl::transmit(PeerId id, Peer &peer, Queued &queued) {
  auto &connection = *peer.connection;
  const auto limit = connection.max_message_bytes();
  if (queued.bytes.size() <= limit) return connection.try_send(queued.kind, queued.bytes);
  if (connection.maps_memory()) return send_block(id, peer, queued.bytes);
  while (queued.sent < queued.bytes.size()) {
    auto rest = std::span<const std::byte>(queued.bytes).subspan(queued.sent);
    auto part = rest.first(std::min(rest.size(), limit));
    const bool last = part.size() == rest.size();
    if (!connection.try_send(last ? MessageKind::kLastFragment : MessageKind::kFragment, part)) return false;
    queued.sent += part.size();
  }
  return true;
}

Status Endpoint::Impl::send(PeerId id, MessageKind kind, std::span<const std::byte> message) {
  auto *peer = find(id);
  if (peer == nullptr) return no_peer(id);
  if (peer->queue.empty() && peer->connection->try_send(kind, message)) return {};
  return enqueue(id, *peer, kind, message);
}

void Endpoint::Impl::start_atomic(PeerId id, const RemoteBuffer &remote, std::uint64_t offset,
                                  const AtomicOperation &operation, std::uint64_t &previous, Completion &completion) {
  auto *peer = find(id);
  if (peer == nullptr) return completion.on_complete(no_peer(id));
  if (!can_hold(remote, offset, sizeof(std::uint64_t)))
    return completion.on_complete(outside(remote, offset, sizeof(std::uint64_t)));
  if (auto done = peer->connection->try_atomic(remote, offset, operation)) {
    if (done->ok()) previous = **done;
    return completion.on_complete(done->ok() ? Status() : done->error());
  }
  if (atomics.size() >= queue_limit)
    return completion.on_complete(Error{Code::kBusy, "too many atomic operations are pending; wait for some"});
  auto request = atomics.ask(id, remote, offset, operation, previous, completion);
  if (auto sent = send(id, MessageKind::kAtomic, request); !sent.ok()) atomics.withdraw_last(sent.error());
}

std::size_t Endpoint::Impl::flush_queues() {
  std::size_t sent = 0;
  for (std::size_t i = 0; i < waiting_for_credits.size();) {
    if (flush_queue(waiting_for_credits[i])) {
      waiting_for_credits.erase(waiting_for_credits.begin() + static_cast<std::ptrdiff_t>(i));
      ++sent;
    } else {
      ++i;
    }
  }
  return sent;
}

/// True if nothing is left to send.
bool Endpoint::Impl::flush_queue(PeerId id) {
  auto *peer = find(id);
  if (peer == nullptr) return true;
  while (!peer->queue.empty() && transmit(id, *peer, peer->queue.front())) peer->queue.pop_front();
  return peer->queue.empty();
}

std::size_t Endpoint::Impl::progress() {
  std::size_t events = 0;
  if (++turns % kTurnsPerLook == 0) poller.dispatch(Deadline::now());
  // By number: a callback may connect, and with that open one more.
  for (std::size_t i = 0; i < transports.size(); ++i) events += transports[i]->progress();
  if (!waiting_for_credits.empty()) events += flush_queues();
  return events;
}

void Endpoint::Impl::accepted(Connection &connection) { sink.on_peer_connected(add_peer(connection)); }

void Endpoint::Impl::message(Connection &connection, MessageKind kind, std::span<const std::byte> message) {
  if (kind == MessageKind::kUser) [[likely]]
    return sink.on_message(connection.peer, message);
  if (!on_protocol(connection, kind, message)) reject(connection);
}

/// What the endpoints say to each other. False: it makes no sense.
bool Endpoint::Impl::on_protocol(Connection &connection, MessageKind kind, std::span<const std::byte> message) {
  switch (kind) {
    case MessageKind::kAtomic: return on_atomic(connection, message);
    case MessageKind::kAtomicDone: return atomics.on_answer(connection.peer, message);
    case MessageKind::kEager: return on_block(connection, message);
    case MessageKind::kEagerDone: return eager_blocks.on_done(connection.peer, message);
    case MessageKind::kFragment:
    case MessageKind::kLastFragment: return on_fragment(connection, kind, message);
    case MessageKind::kPing: return on_ping(connection, message);
    case MessageKind::kPong: return probes.on_pong(connection.peer, message);
    case MessageKind::kBorrow: return on_borrow(connection, message);
    case MessageKind::kLent: return probes.on_lent(connection.peer, message);
    case MessageKind::kUser: break;
  }
  return false;
}

/// The copy keeps the message from changing while it is looked at. It is acknowledged afterwards: who is answered by
/// the callback does not have to read the acknowledgement before the answer. The callback may end the connection.
bool Endpoint::Impl::on_block(Connection &connection, std::span<const std::byte> message) {
  auto notice = decode_eager_notice(message);
  if (!notice) return false;
  std::array<std::byte, kMaxEagerBytes> copy;
  auto bytes = fetch_block(connection, *notice, copy);
  if (!bytes.ok()) {
    nessie::log::error("nnti: a peer's message cannot be fetched: {}", bytes.error().message);
    return false;
  }
  const auto peer = connection.peer;
  sink.on_message(peer, *bytes);
  return send(peer, MessageKind::kEagerDone, encode_eager_done(notice->block)).ok() || find(peer) == nullptr;
}

bool Endpoint::Impl::on_fragment(Connection &connection, MessageKind kind, std::span<const std::byte> fragment) {
  auto *peer = find(connection.peer);
  if (peer == nullptr) return true;
  auto &assembling = peer->assembling;
  if (assembling.size() + fragment.size() > kMaxEagerBytes) return false;
  assembling.insert(assembling.end(), fragment.begin(), fragment.end());
  if (kind == MessageKind::kLastFragment) sink.on_message(connection.peer, std::exchange(assembling, {}));
  return true;
}

bool Endpoint::Impl::on_atomic(Connection &connection, std::span<const std::byte> message) {
  auto answer = answer_atomic(connection.transport(), message);
  return !answer.empty() && send(connection.peer, MessageKind::kAtomicDone, answer).ok();
}

/// Gives up a peer that breaks the protocol.
void Endpoint::Impl::reject(Connection &connection) {
  auto peer = connection.peer;
  if (remove(peer) == nullptr) return;
  connection.close();
  const Error error{Code::kBadMessage, "the peer broke the protocol; run the same Nessie on both sides",
                    nessie::Scope::kPeer};
  abandon_operations(peer, {Code::kPeerLost, error.message, nessie::Scope::kPeer});
  sink.on_peer_lost(peer, error);
}

void Endpoint::Impl::lost(Connection &connection, Loss, const Error &error) {
  auto peer = connection.peer;
  if (remove(peer) == nullptr) return;
  abandon_operations(peer, {Code::kPeerLost, error.message, nessie::Scope::kPeer, error.cause});
  sink.on_peer_lost(peer, error);
}

std::unique_ptr<RegisteredBuffer::Impl> Endpoint::Impl::add_buffer(std::span<std::byte> memory, Rights rights) {
  auto buffer = std::make_unique<RegisteredBuffer::Impl>();
  buffer->region = {memory, rights, -1};
  buffer->position = buffers.insert(buffers.end(), buffer.get());
  buffer->endpoint = this;
  return buffer;
}

Result<std::unique_ptr<RegisteredBuffer::Impl>> Endpoint::Impl::allocate(std::size_t size_bytes, Rights rights) {
  auto memory = make_shared_memory("nessie-buffer", std::max<std::size_t>(size_bytes, 1), Peers::kMayWrite);
  if (!memory.ok()) return memory.error();
  auto buffer = add_buffer(memory->mapping.bytes().first(size_bytes), rights);
  buffer->region.memfd = memory->fd.get();
  buffer->allocated = std::move(*memory);
  return buffer;
}

// --- outside ----------------------------------------------------------------------------------------------------------

Endpoint::Endpoint(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Endpoint::~Endpoint() {
  if (impl_ && !impl_->birth.was_here()) (void)impl_.release();
}

Result<std::unique_ptr<Endpoint>> Endpoint::open(EndpointOptions options, EventSink &sink) {
  if (!options.credential.is_set()) {
    auto credential = nessie::Credential::of(options.config);
    if (!credential.ok()) return credential.error();
    options.credential = *credential;
  }
  std::unique_ptr<Endpoint> endpoint(new Endpoint(std::make_unique<Impl>(std::move(options), sink)));
  endpoint->impl_->self = endpoint.get();
  if (auto status = endpoint->impl_->open_transports(); !status.ok()) return status.error();
  return endpoint;
}

std::vector<TransportInfo> Endpoint::survey(const nessie::Config &config,
                                            std::span<const TransportKind *const> extra_transports) {
  std::vector<TransportInfo> infos;
  for (const auto &kind : known_kinds(extra_transports)) {
    infos.push_back(kind.survey(config));
    if (infos.back().available && kind.reliability != Reliability::kAlways)
      infos.back().explanation += "; a connection that breaks is made again";
  }
  return infos;
}

const std::string &Endpoint::url() const { return impl_->url; }

void Endpoint::disconnect(PeerId peer) {
  auto *connection = impl_->remove(peer);
  if (connection == nullptr) return;
  connection->close();
  impl_->abandon_operations(peer, {Code::kCancelled, "disconnected"});
}

std::string_view Endpoint::transport_of(PeerId peer) const {
  auto *known = impl_->find(peer);
  return known == nullptr ? std::string_view() : known->connection->transport().name();
}

bool Endpoint::can_view(PeerId peer) const {
  auto *known = impl_->find(peer);
  return known != nullptr && known->connection->maps_memory();
}

Status Endpoint::give_descriptor(PeerId peer, std::uint64_t key, int descriptor) {
  auto *known = impl_->find(peer);
  return known == nullptr ? Status(no_peer(peer)) : known->connection->give_descriptor(key, descriptor);
}

Result<int> Endpoint::take_descriptor(PeerId peer, std::uint64_t key) {
  auto *known = impl_->find(peer);
  return known == nullptr ? Result<int>(no_peer(peer)) : known->connection->take_descriptor(key);
}

bool Endpoint::can_give_descriptors(PeerId peer) const {
  auto *known = impl_->find(peer);
  return known != nullptr && known->connection->can_give_descriptors();
}

Result<pid_t> Endpoint::process_of(PeerId peer) const {
  auto *known = impl_->find(peer);
  return known == nullptr ? Result<pid_t>(no_peer(peer)) : known->connection->process();
}

bool Endpoint::has_unsent(PeerId peer) const {
  auto *known = impl_->find(peer);
  return known != nullptr && !known->queue.empty();
}

std::size_t Endpoint::max_message_bytes(PeerId peer) const {
  auto *known = impl_->find(peer);
  return known == nullptr ? 0 : std::max(known->connection->max_message_bytes(), kMaxEagerBytes);
}

std::size_t Endpoint::max_in_place_bytes(PeerId peer) const {
  auto *known = impl_->find(peer);
  return known == nullptr ? 0 : known->connection->max_message_bytes();
}

Result<RegisteredBuffer> Endpoint::register_memory(std::span<std::byte> memory, Rights rights) {
  std::uintptr_t end = 0;
  if (__builtin_add_overflow(reinterpret_cast<std::uintptr_t>(memory.data()), memory.size(), &end))
    return Error{Code::kInvalidArgument, fmt::format("{} bytes from there do not fit memory", memory.size())};
  return RegisteredBuffer(impl_->add_buffer(memory, rights));
}

Result<RegisteredBuffer> Endpoint::allocate(std::size_t size_bytes, Rights rights) {
  auto buffer = impl_->allocate(size_bytes, rights);
  if (!buffer.ok()) return buffer.error();
  return RegisteredBuffer(std::move(*buffer));
}

Status Endpoint::send(PeerId peer, std::span<const std::byte> message) {
  auto *known = impl_->find(peer);
  if (known == nullptr) return no_peer(peer);
  const bool is_small = message.size() <= kMinMessageBytes && known->queue.empty();
  if (is_small && known->connection->try_send(MessageKind::kUser, message)) [[likely]]
    return {};
  if (message.size() > kMaxEagerBytes && message.size() > known->connection->max_message_bytes())
    return Error{Code::kInvalidArgument, fmt::format("a message of {} bytes; this peer takes at most {}",
                                                     message.size(), max_message_bytes(peer))};
  return impl_->send_message(peer, *known, message);
}

void Endpoint::get(PeerId peer, const RemoteBuffer &remote, std::uint64_t offset, std::span<std::byte> local,
                   Completion &completion) {
  auto *known = impl_->find(peer);
  if (known == nullptr) return completion.on_complete(no_peer(peer));
  if (!can_hold(remote, offset, local.size())) return completion.on_complete(outside(remote, offset, local.size()));
  known->connection->get(remote, offset, local, completion);
}

Result<PeerView> Endpoint::view(PeerId peer, const RemoteBuffer &remote, std::uint64_t offset, std::size_t size_bytes) {
  auto *known = impl_->find(peer);
  if (known == nullptr) return no_peer(peer);
  if (!can_hold(remote, offset, size_bytes)) return outside(remote, offset, size_bytes);
  return known->connection->view(remote, offset, size_bytes);
}

void Endpoint::put(PeerId peer, const RemoteBuffer &remote, std::uint64_t offset, std::span<const std::byte> local,
                   Completion &completion) {
  auto *known = impl_->find(peer);
  if (known == nullptr) return completion.on_complete(no_peer(peer));
  if (!can_hold(remote, offset, local.size())) return completion.on_complete(outside(remote, offset, local.size()));
  known->connection->put(remote, offset, local, completion);
}

void Endpoint::fetch_add(PeerId peer, const RemoteBuffer &remote, std::uint64_t offset, std::uint64_t operand,
                         std::uint64_t &previous, Completion &completion) {
  impl_->start_atomic(peer, remote, offset, {AtomicOperation::Kind::kFetchAdd, operand, 0}, previous, completion);
}

void Endpoint::compare_swap(PeerId peer, const RemoteBuffer &remote, std::uint64_t offset, std::uint64_t expected,
                            std::uint64_t desired, std::uint64_t &previous, Completion &completion) {
  impl_->start_atomic(peer, remote, offset, {AtomicOperation::Kind::kCompareSwap, desired, expected}, previous,
                      completion);
}

std::size_t Endpoint::progress() { return impl_->progress(); }
void Endpoint::wait(Deadline deadline, Waking waking) { impl_->waiter.wait(impl_->transports, deadline, waking); }

bool Endpoint::is_crowded() const { return impl_->waiter.is_crowded(); }
void Endpoint::wake() { impl_->waiter.wake(); }
Result<int> Endpoint::wait_fd() { return impl_->waiter.descriptor(); }
bool Endpoint::arm() { return impl_->waiter.arm(impl_->transports); }
void Endpoint::disarm() { impl_->waiter.disarm(impl_->transports); }

}  // namespace nnti

// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/ofi/transport.hpp"

#include "nnti/network_address.hpp"

#include <fmt/core.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <chrono>

namespace nnti::ofi {

namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kListenerEvent = 0;  // in epoll; everything else is a connection's token, or
constexpr std::uint64_t kQueueEvent = 1;
constexpr std::uint64_t kLanesEvent = 2;
constexpr unsigned kTurnsPerSocketLook = 256;
constexpr unsigned kIdleTurns = 256;       // after so many, the queue is read only every
constexpr unsigned kTurnsPerIdlePoll = 8;  // so many turns
constexpr std::size_t kSpareReceives = 8;
constexpr std::size_t kCreditFrames = 4;  // kCredit frames that may be under way beside the credits
constexpr auto kRetryTime = 1ms;
constexpr auto kGoodbyeTime = 1s;

/// A connection being made: the bootstrap's connecting side, and, where both sides may have one, the lane's.
class OfiConnecting final : public Connecting {
 public:
  OfiConnecting(OfiTransport &transport, OfiConnection &connection, HostPort address, Fd socket)
      : transport_(transport), connection_(&connection), address_(std::move(address)) {
    begin(std::move(socket), transport.hello_for(connection));
  }
  ~OfiConnecting() override {
    if (connection_) transport_.drop(*connection_);
  }

  std::optional<Result<nnti::Connection *>> advance() override {
    auto outcome = connector_->advance();
    if (!outcome) {
      transport_.watch(connector_->fd(), connection_->token(), connector_->wants_write());
      return std::nullopt;
    }
    if (!outcome->ok()) return Result<nnti::Connection *>(outcome->error());
    if (socket_) {
      transport_.unwatch((*outcome)->socket.fd());
      connection_->use_lane((*outcome)->socket.take());
    } else {
      auto more = on_first_answer(**outcome);
      if (!more.ok()) return Result<nnti::Connection *>(more.error());
      if (*more) return std::nullopt;
    }
    auto *connection = std::exchange(connection_, nullptr);
    transport_.start(*connection, std::move(*socket_), true);
    return Result<nnti::Connection *>(connection);
  }

 private:
  void begin(Fd socket, std::vector<std::byte> hello) {
    connector_.emplace(std::move(socket), "ofi", transport_.credential(), bootstrap::Hello{std::move(hello), {}});
    transport_.watch(connector_->fd(), connection_->token(), true);
  }

  /// True: a lane is being made.
  Result<bool> on_first_answer(bootstrap::Established &established) {
    auto hello = decode_hello(established.theirs.blob);
    if (!hello.ok()) return hello.error();
    if (auto status = connection_->learn(*hello); !status.ok()) return status.error();
    socket_.emplace(std::move(established.socket));
    if (!hello->lane || !transport_.offers_lanes()) return false;
    auto socket = bootstrap::connect_tcp(address_.host, address_.port);
    if (!socket.ok()) return socket.error();
    begin(std::move(*socket), stream::encode_lane_hello(hello->token));
    return true;
  }

  OfiTransport &transport_;
  OfiConnection *connection_;
  HostPort address_;
  std::optional<bootstrap::Connector> connector_;
  std::optional<bootstrap::PageSocket> socket_;  ///< once the peer has answered
};

/// Whether libfabric moves data by the sockets that any process can have.
bool has_only_tcp(std::string_view provider) {
  return provider.starts_with("tcp") || provider.starts_with("net") || provider.starts_with("sockets");
}

}  // namespace

// --- opening ------------------------------------------------------------------------------------------------------------

TransportInfo survey(const nessie::Config &config) {
  auto fabric = Fabric::open(config);
  if (!fabric.ok()) return {"ofi", false, fabric.error().message, list_providers(config, nullptr)};
  auto facts = list_providers(config, &(*fabric)->info());
  facts.push_back((*fabric)->describe_cache());
  facts.push_back(
      {"messages in place", fmt::format("up to {} bytes, over a lane {}", kMaxInlineBytes, kMaxMessageBytes)});
  facts.push_back({"credits", fmt::format("{} frames each way of a connection", kCredits)});
  return {"ofi", true,
          fmt::format("libfabric's provider {} at {}; the owner of a registered buffer writes into, or reads from, the "
                      "memory that the other side exposes for the transfer",
                      (*fabric)->provider(), (*fabric)->host()),
          std::move(facts)};
}

Result<std::unique_ptr<Transport>> open(const TransportOptions &options) {
  auto fabric = Fabric::open(options.config);
  if (!fabric.ok()) return fabric.error();
  auto keep_alive = KeepAlive::load(options.config);
  if (!keep_alive.ok()) return keep_alive.error();
  const auto lanes = stream::lanes_wanted(options.config);
  if (!lanes.ok()) return lanes.error();
  auto transport = std::make_unique<OfiTransport>(options, std::move(*fabric), *keep_alive, *lanes);
  if (options.listen)
    if (auto status = transport->listen(options.config); !status.ok()) return status.error();
  return std::unique_ptr<Transport>(std::move(transport));
}

OfiTransport::OfiTransport(const TransportOptions &options, std::unique_ptr<Fabric> fabric, const KeepAlive &keep_alive,
                           bool lanes)
    : credential_(options.credential),
      events_(options.events),
      fabric_(std::move(fabric)),
      keep_alive_(keep_alive),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      lanes_(options.poller),
      slots_(fabric_.get(), kMaxPostedFrameBytes) {
  if (fabric_->wait_fd() >= 0) watch(fabric_->wait_fd(), kQueueEvent, false);
  watch(lanes_.wait_fd(), kLanesEvent, false);
  offers_lanes_ = lanes && has_only_tcp(fabric_->provider());
  post_receives();
}

Status OfiTransport::listen(const nessie::Config &config) {
  auto port = config.get_int("nnti.ofi.port", 0);
  if (!port.ok()) return port.error();
  if (*port < 0 || *port > 65535) return Error{Code::kInvalidArgument, "nnti.ofi.port is not a port"};
  auto socket = bootstrap::listen_tcp(fabric_->host(), static_cast<std::uint16_t>(*port));
  if (!socket.ok()) return socket.error();
  nessie::Url url{"ofi", join_host_port(fabric_->host(), port_of(socket->get())), {{"provider", fabric_->provider()}}};
  if (is_loopback(fabric_->host())) url.query["node"] = this_network_node();
  // The list of an endpoint's URLs is joined by ';', which libfabric's names contain.
  std::replace(url.query["provider"].begin(), url.query["provider"].end(), ';', '+');
  url_ = url.to_string();
  listener_ = std::make_unique<bootstrap::Listener>(
      std::move(*socket), "ofi", credential_, [this](int, bootstrap::Hello &theirs) { return answer(theirs); },
      [this](bootstrap::Established established) { on_accepted(std::move(established)); },
      bootstrap::Listener::Limits());
  watch(listener_->wait_fd(), kListenerEvent, false);
  return {};
}

/// Says goodbye to everybody, and gives what was sent a moment to leave.
OfiTransport::~OfiTransport() {
  for (auto &[token, connection] : connections_) connection->close();
  const auto deadline = Deadline::in(kGoodbyeTime);
  const auto some_left = [this] {
    return std::any_of(connections_.begin(), connections_.end(), [](const auto &entry) {
      return entry.second->state() == OfiConnection::State::kClosing && !entry.second->said_goodbye();
    });
  };
  while (some_left() && !deadline.passed()) {
    poll();
    dispatch();
    pump_connections();
  }
  connections_.clear();
}

Status OfiTransport::can_reach(const nessie::Url &url) const {
  auto address = parse_host_port(url.address);
  if (!address.ok()) return address.error();
  auto provider = fabric_->provider();
  std::replace(provider.begin(), provider.end(), ';', '+');
  if (auto theirs = url.query.find("provider"); theirs != url.query.end() && theirs->second != provider)
    return Error{Code::kUnsupported,
                 fmt::format("it uses libfabric's provider {}, this process {}; set nnti.ofi.provider", theirs->second,
                             provider)};
  if (auto node = url.query.find("node"); node != url.query.end() && node->second != this_network_node())
    return Error{Code::kUnsupported, "it listens at the loopback of another node; set nnti.ofi.address there"};
  return {};
}

Result<std::unique_ptr<Connecting>> OfiTransport::connect(const nessie::Url &url, Deadline) {
  auto address = parse_host_port(url.address);
  if (!address.ok()) return address.error();
  auto socket = bootstrap::connect_tcp(address->host, address->port);
  if (!socket.ok()) return socket.error();
  return std::unique_ptr<Connecting>(
      std::make_unique<OfiConnecting>(*this, new_connection(), std::move(*address), std::move(*socket)));
}

Result<std::unique_ptr<TransportMemory>> OfiTransport::register_memory(const MemoryRegion &region) {
  auto memory = std::make_unique<Memory>(*this, region);
  if (auto status = memory->keep_registered(); !status.ok()) return status.error();
  return std::unique_ptr<TransportMemory>(std::move(memory));
}

std::optional<MemoryRegion> OfiTransport::find_memory(const RemoteBuffer &buffer) const {
  auto found = memories_.find(buffer.key);
  if (found == memories_.end()) return std::nullopt;
  return MemoryRegion{found->second->bytes(), found->second->rights(), -1};
}

// --- connections ----------------------------------------------------------------------------------------------------------

OfiConnection *OfiTransport::find(std::uint64_t token) {
  auto found = connections_.find(token);
  return found == connections_.end() ? nullptr : found->second.get();
}

OfiConnection &OfiTransport::new_connection() {
  const std::uint64_t token = std::max<std::uint64_t>(nessie::random_u64(), kLanesEvent + 1);
  auto &connection = connections_[token] = std::make_unique<OfiConnection>(*this, token);
  post_receives();
  return *connection;
}

void OfiTransport::drop(OfiConnection &connection) { connections_.erase(connection.token()); }

std::vector<std::byte> OfiTransport::hello_for(const OfiConnection &connection) const {
  return encode_hello({connection.token(), fabric_->provider(), fabric_->name(), offers_lanes_});
}

void OfiTransport::on_accepted(bootstrap::Established established) {
  if (auto *with_lane = std::exchange(answering_lane_, nullptr)) return with_lane->use_lane(established.socket.take());
  OfiConnection &connection = *std::exchange(answering_, nullptr);
  start(connection, std::move(established.socket), false);
  unannounced_.push_back(connection.token());
}

/// A lane for a connection that has been made, and over which nothing was said yet.
Result<bootstrap::Hello> OfiTransport::answer_lane(std::uint64_t token) {
  OfiConnection *connection = find(token);
  if (connection == nullptr || !connection->may_be_given_lane() || !offers_lanes_)
    return Error{Code::kBadMessage, "there is no connection that waits for a lane", nessie::Scope::kPeer};
  answering_lane_ = connection;
  return bootstrap::Hello{stream::encode_lane_hello(token), {}};
}

Result<bootstrap::Hello> OfiTransport::answer(bootstrap::Hello &theirs) {
  if (const auto token = stream::decode_lane_hello(theirs.blob)) return answer_lane(*token);
  auto hello = decode_hello(theirs.blob);
  if (!hello.ok()) return hello.error();
  OfiConnection &connection = new_connection();
  if (auto status = connection.learn(*hello); !status.ok()) {
    drop(connection);
    return status.error();
  }
  answering_ = &connection;
  return bootstrap::Hello{hello_for(connection), {}};
}

void OfiTransport::start(OfiConnection &connection, bootstrap::PageSocket socket, bool we_connected) {
  connection.established(std::move(socket), we_connected);
  keep_alive_.apply(connection.socket());
  watch(connection.socket(), connection.token(), false);
  attend(connection);
}

void OfiTransport::watch(int fd, std::uint64_t token, bool also_writing) {
  epoll_event event{};
  event.events = EPOLLIN | (also_writing ? EPOLLOUT : 0u);
  event.data.u64 = token;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) != 0) ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
}

void OfiTransport::unwatch(int fd) { ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }

void OfiTransport::forget_socket(OfiConnection &connection) {
  if (connection.socket() >= 0) unwatch(connection.socket());
}

void OfiTransport::pump_later(OfiConnection &connection) {
  if (std::exchange(connection.waits_for_pump, true)) return;
  to_pump_.push_back(connection.token());
}

void OfiTransport::attend(OfiConnection &connection) {
  if (std::find(to_attend_.begin(), to_attend_.end(), connection.token()) == to_attend_.end())
    to_attend_.push_back(connection.token());
}

bool OfiTransport::post_frame(OfiConnection &connection, const FrameHeader &header, std::span<const std::byte> body) {
  Slot *slot = slots_.take();
  if (slot == nullptr) return false;
  std::memcpy(slot->data, &header, sizeof header);
  if (!body.empty()) std::memcpy(slot->data + sizeof header, body.data(), body.size());
  slot->kind = Work::Kind::kSend;
  slot->token = connection.token();
  const auto rc = fi_send(fabric_->endpoint(), slot->data, sizeof header + body.size(), slot->descriptor,
                          connection.address(), static_cast<Work *>(slot));
  if (rc == 0) return true;
  slots_.give_back(slot);
  if (rc == -FI_EAGAIN)
    stalled_ = true;
  else
    connection.break_with(fabric_error("cannot send to the peer", rc));
  return false;
}

// --- the provider's queue ---------------------------------------------------------------------------------------------------

std::size_t OfiTransport::wanted_receives() const {
  const std::size_t wanted = kSpareReceives + (connections_.size() - lanes_.size()) * (kCredits + kCreditFrames);
  return std::min<std::size_t>(wanted, fabric_->info().rx_attr->size);
}

void OfiTransport::post_receives() {
  while (receives_posted_ < wanted_receives()) {
    Slot *slot = slots_.take();
    if (slot == nullptr || !post_receive(*slot)) return;
  }
}

bool OfiTransport::post_receive(Slot &slot) {
  slot.kind = Work::Kind::kReceive;
  const auto rc = fi_recv(fabric_->endpoint(), slot.data, kMaxPostedFrameBytes, slot.descriptor, FI_ADDR_UNSPEC,
                          static_cast<Work *>(&slot));
  if (rc == 0)
    ++receives_posted_;
  else
    slots_.give_back(&slot);
  return rc == 0;
}

std::size_t OfiTransport::poll() { return lanes_.poll() + (uses_library() ? poll_queue() : 0); }

std::size_t OfiTransport::poll_queue() {
  std::array<fi_cq_msg_entry, 32> entries;
  std::size_t handled = 0;
  for (;;) {
    const auto count = fi_cq_read(fabric_->queue(), entries.data(), entries.size());
    if (count == -FI_EAVAIL) {
      read_error();
      ++handled;
      continue;
    }
    if (count <= 0) return handled;
    for (ssize_t i = 0; i < count; ++i)
      if (entries[i].op_context != nullptr)
        on_completion(*static_cast<Work *>(entries[i].op_context), entries[i].len, 0);
    handled += static_cast<std::size_t>(count);
    if (static_cast<std::size_t>(count) < entries.size()) return handled;
  }
}

void OfiTransport::read_error() {
  fi_cq_err_entry entry{};
  if (fi_cq_readerr(fabric_->queue(), &entry, 0) <= 0 || entry.op_context == nullptr) return;
  on_completion(*static_cast<Work *>(entry.op_context), 0, entry.err == 0 ? FI_EIO : entry.err);
}

/// Notes what happened; calls nobody.
void OfiTransport::on_completion(Work &work, std::size_t size_bytes, int error) {
  if (work.kind == Work::Kind::kReceive) {
    --receives_posted_;
    arrived_.push_back({static_cast<Slot *>(&work), error == 0 ? size_bytes : 0});
  } else if (work.kind == Work::Kind::kSend) {
    Slot &slot = static_cast<Slot &>(work);
    if (OfiConnection *connection = find(slot.token)) {
      connection->on_sent();
      if (error != 0) connection->break_with(fabric_error("the peer cannot be reached any more", error));
    }
    slots_.give_back(&slot);
  } else {
    Chunk &chunk = static_cast<Chunk &>(work);
    --chunk.served->in_flight;
    chunk.lease.reset();
    if (error != 0) on_failed_chunk(*chunk.served, error);
    free_chunks_.push_back(&chunk);
  }
}

/// The provider ends the connection when a transfer fails: whoever asked for it asks again over the next one.
void OfiTransport::on_failed_chunk(Served &served, int error) {
  if (served.result != Code::kOk) return;
  served.result = Code::kIo;
  if (OfiConnection *connection = find(served.token))
    connection->break_with(fabric_error("a transfer with the peer failed", error));
}

/// Tells the endpoint of new peers: not from within the listener, but before any of their messages.
void OfiTransport::announce() {
  while (!unannounced_.empty()) {
    OfiConnection *connection = find(unannounced_.front());
    unannounced_.pop_front();
    if (connection) events_.accepted(*connection);
  }
}

std::size_t OfiTransport::dispatch() {
  std::size_t frames = 0;
  if (!unannounced_.empty()) announce();
  while (!arrived_.empty()) {
    const Arrived arrived = arrived_.front();
    arrived_.pop_front();
    if (auto frame = decode_frame({arrived.slot->data, arrived.size_bytes}))
      if (OfiConnection *connection = find(frame->header.token)) connection->on_frame(*frame);
    if (lanes_.anything_to_finish()) lanes_.finish();  // the next frame may be the last
    if (arrived.slot->kind == Work::Kind::kFromLane)
      lane_slots_.give_back(arrived.slot);
    else if (receives_posted_ < wanted_receives())
      post_receive(*arrived.slot);
    else
      slots_.give_back(arrived.slot);
    ++frames;
  }
  return frames;
}

// --- progress ---------------------------------------------------------------------------------------------------------------

std::size_t OfiTransport::progress() {
  ++depth_;
  const bool idle = connections_.empty() || (++idle_turns_ > kIdleTurns && idle_turns_ % kTurnsPerIdlePoll != 0);
  std::size_t events = idle && !look_at_sockets_ ? 0 : poll();
  if (lanes_.anything_to_finish()) events += lanes_.finish();
  events += dispatch();
  stalled_ = false;
  // Not while there are frames: their answers come first.
  if ((look_at_sockets_ && events == 0) || ++turns_ % kTurnsPerSocketLook == 0) events += poll_sockets();
  if (!served_.empty()) continue_served();
  if (!to_pump_.empty()) pump_connections();
  if (!to_attend_.empty()) events += settle_connections();
  if (events > 0) idle_turns_ = 0;
  if (--depth_ == 0) reap();
  return events;
}

std::size_t OfiTransport::poll_sockets() {
  look_at_sockets_ = false;
  fabric_->collect_registrations();
  std::array<epoll_event, 64> happened;
  const int count = ::epoll_wait(epoll_.get(), happened.data(), happened.size(), 0);
  std::size_t events = 0;
  for (int i = 0; i < count; ++i) {
    const std::uint64_t token = happened[i].data.u64;
    if (token == kListenerEvent)
      events += listener_->progress();
    else if (token == kQueueEvent)
      events += poll_queue();
    else if (token == kLanesEvent)
      events += lanes_.poll();
    else if (OfiConnection *connection = find(token))
      connection->on_socket();
  }
  if (listener_ && listener_->timer().passed()) events += listener_->progress();
  if (watch_at_.passed()) watch_frames();
  announce();
  return events;
}

void OfiTransport::watch_frames() {
  if (keep_alive_.heartbeat.count() == 0) return;
  watch_at_ = Deadline::in(keep_alive_.heartbeat);
  for (auto &[token, connection] : connections_) connection->watch_frames();
}

void OfiTransport::pump_connections() {
  for (const auto token : std::exchange(to_pump_, {})) {
    OfiConnection *connection = find(token);
    if (connection == nullptr) continue;
    connection->waits_for_pump = false;
    if (!connection->pump()) pump_later(*connection);
  }
}

/// Returns the number of connections that have ended.
std::size_t OfiTransport::settle_connections() {
  std::size_t ended = 0;
  const bool queue_is_empty = poll() == 0 && arrived_.empty();
  for (const auto token : std::exchange(to_attend_, {})) {
    OfiConnection *connection = find(token);
    if (connection == nullptr) continue;
    connection->settle(queue_is_empty);
    if (connection->reapable())
      ++ended;
    else if (!connection->timer().is_never())
      attend(*connection);
  }
  any_to_reap_ = any_to_reap_ || ended > 0;
  return ended;
}

void OfiTransport::reap() {
  if (!std::exchange(any_to_reap_, false)) return;
  std::erase_if(connections_, [](const auto &entry) { return entry.second->reapable(); });
}

bool OfiTransport::ready() {
  if (!arrived_.empty() || look_at_sockets_) return true;
  return !connections_.empty() && (poll() > 0 || lanes_.anything_to_finish());
}

bool OfiTransport::arm() {
  if (!arrived_.empty() || look_at_sockets_) return false;
  if (poll() > 0 || lanes_.anything_to_finish()) return false;
  lanes_.arm();
  fabric_->collect_registrations();
  return fabric_->wait_fd() < 0 || !uses_library() || fabric_->may_block();
}

Deadline OfiTransport::timer() const {
  Deadline first = listener_ ? listener_->timer() : Deadline::never();
  const bool poll = fabric_->wait_fd() < 0 && uses_library();
  if (stalled_ || poll) first = first.earlier(Deadline::in(kRetryTime));
  const auto expects = [](const auto &entry) { return entry.second->expects_frames(); };
  if (keep_alive_.heartbeat.count() != 0 && std::any_of(connections_.begin(), connections_.end(), expects))
    first = first.earlier(watch_at_);
  for (const auto token : to_attend_)
    if (auto found = connections_.find(token); found != connections_.end())
      first = first.earlier(found->second->timer());
  return first;
}

}  // namespace nnti::ofi

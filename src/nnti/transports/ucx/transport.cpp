// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/ucx/transport.hpp"

#include "nnti/network_address.hpp"

#include <fmt/core.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <sstream>

namespace nnti::ucx {

namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kListenerEvent = 0;  // in epoll; everything else is a connection's token, or
constexpr std::uint64_t kWorkerEvent = 1;
constexpr std::uint64_t kLanesEvent = 2;
constexpr unsigned kTurnsPerSocketLook = 256;
constexpr unsigned kIdleTurns = 256;       // after so many, UCX is asked only every
constexpr unsigned kTurnsPerIdlePoll = 8;  // so many turns
constexpr unsigned kRoundsPerPoll = 16;
constexpr std::size_t kMostArrived = 2 * kCredits;  // of one peer, kCredit frames among them
constexpr auto kPollTime = 1ms;                     // where UCX has no descriptor to wait on
constexpr auto kGoodbyeTime = 1s;
constexpr auto kPatience = 2s;  // with a peer whose transfer keeps memory that is wanted back

/// A connection being made: the bootstrap's connecting side; then, where both sides may have one, the lane's; else a
/// first frame through UCX.
class UcxConnecting final : public Connecting {
 public:
  UcxConnecting(UcxTransport &transport, UcxConnection &connection, HostPort address, Fd socket)
      : transport_(transport), connection_(&connection), address_(std::move(address)) {
    begin(std::move(socket), transport.hello_for(connection));
  }
  ~UcxConnecting() override {
    if (connection_) transport_.drop(*connection_);
  }

  std::optional<Result<nnti::Connection *>> advance() override {
    if (connector_) {
      auto outcome = connector_->advance();
      if (!outcome) {
        transport_.watch(connector_->fd(), connection_->token(), connector_->wants_write());
        return std::nullopt;
      }
      if (!outcome->ok()) return Result<nnti::Connection *>(outcome->error());
      auto status = socket_ ? on_lane(**outcome) : shake_hands(**outcome);
      if (!status.ok()) return Result<nnti::Connection *>(status.error());
      if (connector_) return std::nullopt;
    }
    auto reached = connection_->reached();
    if (!reached.ok()) return Result<nnti::Connection *>(reached.error());
    if (!*reached) return std::nullopt;
    connection_->open();
    return Result<nnti::Connection *>(std::exchange(connection_, nullptr));
  }

 private:
  void begin(Fd socket, std::vector<std::byte> hello) {
    connector_.emplace(std::move(socket), "ucx", transport_.credential(), bootstrap::Hello{std::move(hello), {}});
    transport_.watch(connector_->fd(), connection_->token(), true);
  }

  Status shake_hands(bootstrap::Established &established) {
    auto hello = decode_hello(established.theirs.blob);
    if (!hello.ok()) return hello.error();
    const auto token = hello->token;
    connection_->learn(std::move(*hello));
    socket_.emplace(std::move(established.socket));
    if (connection_->peer_offers_lane() && transport_.offers_lanes()) return ask_for_lane(token);
    connector_.reset();
    transport_.start(*connection_, std::move(*socket_));
    return connection_->knock();
  }

  Status ask_for_lane(std::uint64_t token) {
    auto socket = bootstrap::connect_tcp(address_.host, address_.port);
    if (!socket.ok()) return socket.error();
    begin(std::move(*socket), stream::encode_lane_hello(token));
    return {};
  }

  Status on_lane(bootstrap::Established &established) {
    transport_.unwatch(established.socket.fd());
    connection_->use_lane(established.socket.take());
    connector_.reset();
    transport_.start(*connection_, std::move(*socket_));
    return {};
  }

  UcxTransport &transport_;
  UcxConnection *connection_;
  HostPort address_;
  std::optional<bootstrap::Connector> connector_;
  std::optional<bootstrap::PageSocket> socket_;  ///< once the peer has answered
};

/// Whether UCX can reach another node by nothing but the sockets that any process can have. What stays within the node
/// does not tell of a peer's end, and is not used.
bool has_only_tcp(const std::string &devices) {
  std::istringstream words(devices);
  for (std::string device; words >> device;) {
    const bool local = device.find("/memory") != std::string::npos;
    if (!local && !device.starts_with("tcp/")) return false;
  }
  return devices.find("tcp/") != std::string::npos;
}

/// For a worker that only looks.
struct NoEvents final : WorkerEvents {
  void on_frame(std::span<const std::byte>) override {}
  bool on_chunk(std::span<const std::byte>, const Payload &) override { return false; }
  void on_complete(Work &, ucs_status_t) override {}
  void on_failure(std::uint64_t, ucs_status_t) override {}
};

}  // namespace

// --- opening ------------------------------------------------------------------------------------------------------------

TransportInfo survey(const nessie::Config &config) {
  NoEvents nobody;
  auto worker = Worker::open(config, nobody);
  if (!worker.ok()) return {"ucx", false, worker.error().message};
  return {"ucx", true,
          fmt::format("UCX, which chooses for each peer among {}; bulk data goes in chunks, which the owner of a "
                      "registered buffer checks{}",
                      (*worker)->devices(),
                      (*worker)->wait_fd() < 0 ? "; it has no descriptor to wait on and is polled" : "")};
}

Result<std::unique_ptr<Transport>> open(const TransportOptions &options) {
  auto transport = std::make_unique<UcxTransport>(options);
  if (auto status = transport->start(options.config, options.listen); !status.ok()) return status.error();
  return std::unique_ptr<Transport>(std::move(transport));
}

UcxTransport::UcxTransport(const TransportOptions &options)
    : credential_(options.credential),
      events_(options.events),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      lanes_(options.poller) {}

Status UcxTransport::start(const nessie::Config &config, bool listen) {
  auto keep_alive = KeepAlive::load(config);
  if (!keep_alive.ok()) return keep_alive.error();
  keep_alive_ = *keep_alive;
  auto worker = Worker::open(config, *this);
  if (!worker.ok()) return worker.error();
  worker_ = std::move(*worker);
  if (worker_->wait_fd() >= 0) watch(worker_->wait_fd(), kWorkerEvent, false);
  const auto lanes = stream::lanes_wanted(config);
  if (!lanes.ok()) return lanes.error();
  offers_lanes_ = *lanes && has_only_tcp(worker_->devices());
  watch(lanes_.wait_fd(), kLanesEvent, false);
  return listen ? this->listen(config) : Status();
}

Status UcxTransport::listen(const nessie::Config &config) {
  auto port = config.get_int("nnti.ucx.port", 0);
  if (!port.ok()) return port.error();
  if (*port < 0 || *port > 65535) return Error{Code::kInvalidArgument, "nnti.ucx.port is not a port"};
  const auto host = config.get_or("nnti.ucx.address", best_host());
  if (host.empty())
    return Error{Code::kUnsupported, "no network interface is up; not even the loopback (ip link set lo up)"};
  auto socket = bootstrap::listen_tcp(host, static_cast<std::uint16_t>(*port));
  if (!socket.ok()) return socket.error();
  nessie::Url url{"ucx", join_host_port(host, port_of(socket->get())), {}};
  if (is_loopback(host)) url.query["node"] = this_network_node();
  url_ = url.to_string();
  listener_ = std::make_unique<bootstrap::Listener>(
      std::move(*socket), "ucx", credential_, [this](int, bootstrap::Hello &theirs) { return answer(theirs); },
      [this](bootstrap::Established established) { on_accepted(std::move(established)); },
      bootstrap::Listener::Limits());
  watch(listener_->wait_fd(), kListenerEvent, false);
  return {};
}

/// Says goodbye to everybody, and gives what was sent a moment to leave.
UcxTransport::~UcxTransport() {
  for (auto &[token, connection] : connections_) connection->close();
  const auto deadline = Deadline::in(kGoodbyeTime);
  const auto some_left = [this] {
    return std::any_of(connections_.begin(), connections_.end(), [](const auto &entry) {
      return entry.second->state() == UcxConnection::State::kClosing && !entry.second->said_goodbye();
    });
  };
  while (some_left() && !deadline.passed()) {
    poll();
    dispatch();
    pump_connections();
  }
  connections_.clear();
}

Status UcxTransport::can_reach(const nessie::Url &url) const {
  auto address = parse_host_port(url.address);
  if (!address.ok()) return address.error();
  if (auto node = url.query.find("node"); node != url.query.end() && node->second != this_network_node())
    return Error{Code::kUnsupported, "it listens at the loopback of another node; set nnti.ucx.address there"};
  return {};
}

Result<std::unique_ptr<Connecting>> UcxTransport::connect(const nessie::Url &url, Deadline) {
  auto address = parse_host_port(url.address);
  if (!address.ok()) return address.error();
  auto socket = bootstrap::connect_tcp(address->host, address->port);
  if (!socket.ok()) return socket.error();
  return std::unique_ptr<Connecting>(
      std::make_unique<UcxConnecting>(*this, new_connection(), std::move(*address), std::move(*socket)));
}

// --- memory ---------------------------------------------------------------------------------------------------------------

Result<std::unique_ptr<TransportMemory>> UcxTransport::register_memory(const MemoryRegion &region) {
  return std::unique_ptr<TransportMemory>(std::make_unique<Memory>(*this, region));
}

std::optional<MemoryRegion> UcxTransport::find_memory(const RemoteBuffer &buffer) const {
  const Memory *memory = memory_with(buffer.key);
  return memory == nullptr ? std::nullopt : std::optional(memory->region());
}

const Memory *UcxTransport::memory_with(std::uint64_t key) const {
  const auto found = memories_.find(key);
  return found == memories_.end() ? nullptr : found->second;
}

void UcxTransport::wait_for_transfers(const std::function<std::size_t()> &in_flight) {
  for (const auto deadline = Deadline::in(kPatience); in_flight() > 0 && !deadline.passed();) poll();
}

/// Returns when no transfer touches the memory any more. A peer that keeps one going for too long is given up.
void UcxTransport::remove_memory(Memory &memory) {
  memories_.erase(memory.key());
  for (auto &[token, connection] : connections_) connection->leave(memory);
  const auto in_flight = [&] {
    std::size_t count = 0;
    for (auto &[token, connection] : connections_) count += connection->transfers().stop(memory);
    return count;
  };
  wait_for_transfers(in_flight);
  if (in_flight() == 0) return;
  for (auto &[token, connection] : connections_)
    if (connection->transfers().stop(memory) > 0) connection->sever();
  wait_for_transfers(in_flight);
}

// --- connections ----------------------------------------------------------------------------------------------------------

UcxConnection *UcxTransport::find(std::uint64_t token) {
  auto found = connections_.find(token);
  return found == connections_.end() ? nullptr : found->second.get();
}

UcxConnection &UcxTransport::new_connection() {
  const auto token = std::max<std::uint64_t>(nessie::random_u64(), kLanesEvent + 1);
  auto &connection = connections_[token] = std::make_unique<UcxConnection>(*this, token);
  return *connection;
}

void UcxTransport::drop(UcxConnection &connection) { connections_.erase(connection.token()); }

std::vector<std::byte> UcxTransport::hello_for(const UcxConnection &connection) const {
  return encode_hello({connection.token(), worker_->address(), offers_lanes_});
}

void UcxTransport::on_accepted(bootstrap::Established established) {
  if (auto *with_lane = std::exchange(answering_lane_, nullptr)) return with_lane->use_lane(established.socket.take());
  UcxConnection &connection = *std::exchange(answering_, nullptr);
  start(connection, std::move(established.socket));
  connection.accept();
  unannounced_.push_back(connection.token());
}

/// A lane for a connection that has been made, and over which nothing was said yet.
Result<bootstrap::Hello> UcxTransport::answer_lane(std::uint64_t token) {
  UcxConnection *connection = find(token);
  if (connection == nullptr || !connection->may_be_given_lane() || !offers_lanes_)
    return Error{Code::kBadMessage, "there is no connection that waits for a lane", nessie::Scope::kPeer};
  answering_lane_ = connection;
  return bootstrap::Hello{stream::encode_lane_hello(token), {}};
}

Result<bootstrap::Hello> UcxTransport::answer(bootstrap::Hello &theirs) {
  if (const auto token = stream::decode_lane_hello(theirs.blob)) return answer_lane(*token);
  auto hello = decode_hello(theirs.blob);
  if (!hello.ok()) return hello.error();
  UcxConnection &connection = new_connection();
  connection.learn(std::move(*hello));
  answering_ = &connection;
  return bootstrap::Hello{hello_for(connection), {}};
}

void UcxTransport::start(UcxConnection &connection, bootstrap::PageSocket socket) {
  connection.established(std::move(socket));
  keep_alive_.apply(connection.socket());
  watch(connection.socket(), connection.token(), false);
  attend(connection);
}

void UcxTransport::watch(int fd, std::uint64_t token, bool also_writing) {
  epoll_event event{};
  event.events = EPOLLIN | (also_writing ? EPOLLOUT : 0u);
  event.data.u64 = token;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) != 0) ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
}

void UcxTransport::unwatch(int fd) { ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }

void UcxTransport::forget_socket(UcxConnection &connection) {
  if (connection.socket() >= 0) unwatch(connection.socket());
}

void UcxTransport::pump_later(UcxConnection &connection) {
  if (std::exchange(connection.waits_for_pump, true)) return;
  to_pump_.push_back(connection.token());
}

void UcxTransport::attend_transfers(UcxConnection &connection) {
  if (std::exchange(connection.transfers_have_ended, true)) return;
  with_ended_transfers_.push_back(connection.token());
}

void UcxTransport::attend(UcxConnection &connection) {
  if (std::find(to_attend_.begin(), to_attend_.end(), connection.token()) == to_attend_.end())
    to_attend_.push_back(connection.token());
}

ucs_status_t UcxTransport::send_frame(UcxConnection &connection, Link &link, const FrameHeader &header,
                                      std::span<const std::byte> body) {
  FrameSlot &slot = frames_.take();
  std::memcpy(slot.bytes.data(), &header, sizeof header);
  if (!body.empty()) std::memcpy(slot.bytes.data() + sizeof header, body.data(), body.size());
  slot.kind = Work::Kind::kFrame;
  slot.token = connection.token();
  const auto status = link.send_frame(std::span(slot.bytes).first(sizeof header + body.size()), slot);
  if (status != UCS_INPROGRESS) frames_.give_back(slot);
  return status;
}

// --- what UCX reports: it is noted here, and nobody is called -----------------------------------------------------------------

void UcxTransport::on_frame(std::span<const std::byte> bytes) {
  FrameHeader header;
  if (bytes.size() < sizeof header) return;
  std::memcpy(&header, bytes.data(), sizeof header);
  UcxConnection *connection = find(header.token);
  if (connection == nullptr || connection->reapable()) return;
  if (!decode_frame(bytes) || connection->arrived >= kMostArrived)
    return connection->break_with(
        {Code::kBadMessage, "the peer sends what cannot be read, or more than it may", nessie::Scope::kPeer});
  if (connection->state() == UcxConnection::State::kConnecting) return connection->on_knock(header);
  FrameSlot &slot = frames_.take();
  std::memcpy(slot.bytes.data(), bytes.data(), bytes.size());
  ++connection->arrived;
  arrived_.push_back({&slot, bytes.size()});
}

bool UcxTransport::on_chunk(std::span<const std::byte> bytes, const Payload &payload) {
  ChunkHeader header;
  if (bytes.size() != sizeof header) return false;
  std::memcpy(&header, bytes.data(), sizeof header);
  UcxConnection *connection = find(header.token);
  if (connection == nullptr || !connection->takes_chunks()) return false;
  if (!decode_chunk(bytes, payload.size_bytes)) {
    connection->break_with({Code::kBadMessage, "the peer sends what cannot be read", nessie::Scope::kPeer});
    return false;
  }
  return connection->transfers().on_chunk(header, payload);
}

void UcxTransport::on_complete(Work &work, ucs_status_t status) {
  UcxConnection *connection = find(work.token);
  if (work.kind == Work::Kind::kFrame) {
    if (connection) connection->on_sent(status);
    return frames_.give_back(static_cast<FrameSlot &>(work));
  }
  if (connection) connection->transfers().on_complete(work, status);
  chunks_.give_back(static_cast<ChunkSlot &>(work));
}

void UcxTransport::on_failure(std::uint64_t token, ucs_status_t status) {
  if (UcxConnection *connection = find(token))
    connection->break_with(ucx_error("the peer cannot be reached any more", status));
}

/// Lets UCX work. Returns 0 if it had nothing to do that concerns us.
std::size_t UcxTransport::poll() { return lanes_.poll() + (uses_library() ? poll_worker() : 0); }

std::size_t UcxTransport::poll_worker() {
  std::size_t did = 0;
  for (unsigned round = 0; round < kRoundsPerPoll; ++round) {
    const auto now = worker_->progress();
    did += now;
    if (now == 0) break;
  }
  return did;
}

// --- progress ---------------------------------------------------------------------------------------------------------------

/// Tells the endpoint of new peers: not from within the listener, but before any of their messages.
void UcxTransport::announce() {
  while (!unannounced_.empty()) {
    UcxConnection *connection = find(unannounced_.front());
    unannounced_.pop_front();
    if (connection) events_.accepted(*connection);
  }
}

std::size_t UcxTransport::dispatch() {
  std::size_t frames = 0;
  if (!unannounced_.empty()) announce();
  while (!arrived_.empty()) {
    const Arrived arrived = arrived_.front();
    arrived_.pop_front();
    const auto frame = decode_frame(std::span(arrived.slot->bytes).first(arrived.size_bytes));
    if (UcxConnection *connection = find(frame->header.token)) {
      --connection->arrived;
      connection->on_frame(*frame);
    }
    frames_.give_back(*arrived.slot);
    if (lanes_.anything_to_finish()) lanes_.finish();  // the next frame may be the last
    ++frames;
    if (!with_ended_transfers_.empty()) finish_transfers();  // the next frame may be the last
  }
  return frames;
}

std::size_t UcxTransport::progress() {
  ++depth_;
  const bool idle = connections_.empty() || (++idle_turns_ > kIdleTurns && idle_turns_ % kTurnsPerIdlePoll != 0);
  const bool ask = !idle || look_at_sockets_;
  std::size_t events = ask ? lanes_.poll() : 0;
  if (ask && uses_library()) poll_worker();
  if (!with_ended_transfers_.empty()) events += finish_transfers();
  if (lanes_.anything_to_finish()) events += lanes_.finish();
  events += dispatch();
  // Not while there are frames: their answers come first.
  if ((look_at_sockets_ && events == 0) || ++turns_ % kTurnsPerSocketLook == 0) events += poll_sockets();
  if (!to_pump_.empty()) pump_connections();
  if (!to_attend_.empty()) events += settle_connections();
  if (std::exchange(ask_again_, false)) ++events;
  if (events > 0) idle_turns_ = 0;
  if (--depth_ == 0) reap();
  return events;
}

std::size_t UcxTransport::poll_sockets() {
  look_at_sockets_ = false;
  std::array<epoll_event, 64> happened;
  const int count = ::epoll_wait(epoll_.get(), happened.data(), happened.size(), 0);
  std::size_t events = 0;
  for (int i = 0; i < count; ++i) {
    const std::uint64_t token = happened[i].data.u64;
    if (token == kListenerEvent)
      events += listener_->progress();
    else if (token == kWorkerEvent)
      poll_worker();
    else if (token == kLanesEvent)
      events += lanes_.poll();
    else if (UcxConnection *connection = find(token))
      connection->on_socket();
  }
  if (listener_ && listener_->timer().passed()) events += listener_->progress();
  announce();
  return events;
}

std::size_t UcxTransport::finish_transfers() {
  const auto tokens = std::exchange(with_ended_transfers_, {});
  for (const auto token : tokens) {
    UcxConnection *connection = find(token);
    if (connection == nullptr) continue;
    connection->transfers_have_ended = false;
    connection->transfers().finish();
  }
  return tokens.size();
}

void UcxTransport::pump_connections() {
  for (const auto token : std::exchange(to_pump_, {})) {
    UcxConnection *connection = find(token);
    if (connection == nullptr) continue;
    connection->waits_for_pump = false;
    if (!connection->pump()) pump_later(*connection);
  }
}

/// Returns the number of connections that have ended.
std::size_t UcxTransport::settle_connections() {
  std::size_t ended = 0;
  const bool queue_is_empty = poll() == 0 && !anything_noted();
  for (const auto token : std::exchange(to_attend_, {})) {
    UcxConnection *connection = find(token);
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

void UcxTransport::reap() {
  if (!std::exchange(any_to_reap_, false)) return;
  std::erase_if(connections_, [](const auto &entry) { return entry.second->reapable(); });
}

bool UcxTransport::ready() {
  if (anything_noted() || look_at_sockets_) return true;
  if (connections_.empty()) return false;
  poll();
  return anything_noted();
}

bool UcxTransport::arm() {
  if (anything_noted() || look_at_sockets_) return false;
  do {
    poll();
    if (anything_noted()) return false;
  } while (poll() > 0);
  lanes_.arm();
  return worker_->wait_fd() < 0 || !uses_library() || worker_->may_block();
}

Deadline UcxTransport::timer() const {
  Deadline first = listener_ ? listener_->timer() : Deadline::never();
  if (worker_->wait_fd() < 0 && uses_library()) first = first.earlier(Deadline::in(kPollTime));
  for (const auto token : to_attend_)
    if (auto found = connections_.find(token); found != connections_.end())
      first = first.earlier(found->second->timer());
  return first;
}

}  // namespace nnti::ucx

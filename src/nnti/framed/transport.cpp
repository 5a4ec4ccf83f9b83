// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/framed/transport.hpp"

#include <fmt/core.h>
#include <sys/epoll.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

namespace nnti::framed {
namespace {

using namespace std::chrono_literals;

constexpr unsigned kTurnsPerLook = 256;
constexpr unsigned kIdleTurns = 256;       // after so many, the network is asked only every
constexpr unsigned kTurnsPerIdlePoll = 8;  // so many turns
constexpr std::size_t kMostArrived = std::size_t{2} * Connection::kCredits;  // of one peer, kCredit frames among them
constexpr auto kGoodbyeTime = 1s;
constexpr auto kPatience = 2s;  // with a peer whose transfer keeps memory that is to be unregistered

}  // namespace

// --- connecting -----------------------------------------------------------------------------------------------------------

/// The bootstrap's connecting side; then what the network needs.
class Transport::Connecting final : public nnti::Connecting {
 public:
  Connecting(Transport &transport, Connection &connection, HostPort address, bootstrap::Connector connector)
      : transport_(transport),
        connection_(&connection),
        address_(std::move(address)),
        connector_(std::move(connector)) {
    transport_.watch(connector_->fd(), connection_->token(), true);
  }
  ~Connecting() override {
    if (connector_) transport_.unwatch(connector_->fd());
    if (connection_) transport_.forget(connection_->token());
  }

  std::optional<Result<nnti::Connection *>> advance() override {
    using Outcome = Result<nnti::Connection *>;
    if (connector_) {
      auto outcome = connector_->advance();
      if (!outcome) {
        transport_.watch(connector_->fd(), connection_->token(), connector_->wants_write());
        return std::nullopt;
      }
      if (!outcome->ok()) return Outcome(outcome->error());
      if (auto status = on_answer(**outcome); !status.ok()) return Outcome(status.error());
    }
    auto reached = connection_->reached();
    if (!reached.ok()) return Outcome(reached.error());
    if (!*reached) return std::nullopt;
    connection_->open();
    return Outcome(std::exchange(connection_, nullptr));
  }

 private:
  Status on_answer(bootstrap::Established &established) {
    if (auto status = connection_->learn(established.theirs.blob); !status.ok()) return status;
    connector_.reset();
    transport_.start(*connection_, std::move(established.socket));
    return connection_->knock(address_);
  }

  Transport &transport_;
  Connection *connection_;
  const HostPort address_;
  std::optional<bootstrap::Connector> connector_;
};

Result<std::unique_ptr<nnti::Connecting>> Transport::connect(const nessie::Url &url, Deadline) {
  auto address = parse_host_port(url.address);
  if (!address.ok()) return address.error();
  Connection &connection = make();
  auto connector = connect_again(*address, connection.hello());
  if (!connector.ok()) {
    forget(connection.token());
    return connector.error();
  }
  return std::unique_ptr<nnti::Connecting>(
      std::make_unique<Connecting>(*this, connection, std::move(*address), std::move(*connector)));
}

Result<bootstrap::Connector> Transport::connect_again(const HostPort &address, std::vector<std::byte> hello) {
  auto socket = bootstrap::connect_tcp(address.host, address.port);
  if (!socket.ok()) return socket.error();
  return bootstrap::Connector(std::move(*socket), protocol(), credential_, bootstrap::Hello{std::move(hello), {}});
}

// --- opening ----------------------------------------------------------------------------------------------------------------

Transport::Transport(std::string_view name, const TransportOptions &options)
    : name_(name),
      credential_(options.credential),
      sealed_(options.sealed),
      events_(options.events),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)) {}

Status Transport::configure(const nessie::Config &config) {
  auto keep_alive = KeepAlive::load(config);
  if (!keep_alive.ok()) return keep_alive.error();
  keep_alive_ = *keep_alive;
  return {};
}

Result<HostPort> Transport::place_at(const nessie::Config &config, const std::string &host) const {
  auto place = place_to_listen(config, name_);
  if (!place.ok()) return place.error();
  if (*place) return parse_host_port((*place)->address);
  const auto setting = fmt::format("nnti.{}.port", name_);
  auto port = config.get_int(setting, 0);
  if (!port.ok()) return port.error();
  if (*port < 0 || *port > 65535) return config.bad_value(setting, "a port, 0 (any) to 65535");
  if (host.empty())
    return Error{Code::kUnsupported, "no network interface is up; not even the loopback (ip link set lo up)"};
  return HostPort{host, static_cast<std::uint16_t>(*port)};
}

Result<nessie::Url> Transport::listen(const nessie::Config &config, const std::string &wanted_host) {
  const auto place = place_at(config, wanted_host);
  if (!place.ok()) return place.error();
  const auto &host = place->host;
  auto socket = bootstrap::listen_tcp(host, place->port);
  if (!socket.ok()) return socket.error();
  nessie::Url url{std::string(name_), join_host_port(host, port_of(socket->get())), {}};
  if (is_loopback(host)) url.query["node"] = this_network_node();
  listener_ = std::make_unique<bootstrap::Listener>(
      std::move(*socket), protocol(), credential_, [this](int, bootstrap::Hello &theirs) { return answer(theirs); },
      [this](bootstrap::Established established) { on_accepted(std::move(established)); });
  watch(listener_->wait_fd(), kListenerEvent, false);
  return url;
}

Status Transport::can_reach(const nessie::Url &url) const {
  auto address = parse_host_port(url.address);
  if (!address.ok()) return address.error();
  if (auto node = url.query.find("node"); node != url.query.end() && node->second != this_network_node())
    return Error{Code::kUnsupported,
                 fmt::format("it listens at the loopback of another node; set nnti.{}.address there", name_)};
  return {};
}

Connection &Transport::make() {
  const auto token = std::max<std::uint64_t>(nessie::random_u64(), kLibraryEvent + 1);
  return *(connections_[token] = make_connection(token));
}

Result<bootstrap::Hello> Transport::answer(bootstrap::Hello &theirs) {
  if (auto again = answer_again(theirs)) return std::move(*again);
  Connection &connection = make();
  if (auto status = connection.learn(theirs.blob); !status.ok()) {
    forget(connection.token());
    return status.error();
  }
  answering_ = &connection;
  return bootstrap::Hello{connection.hello(), {}};
}

void Transport::on_accepted(bootstrap::Established established) {
  if (established_again(established)) return;
  Connection &connection = *std::exchange(answering_, nullptr);
  start(connection, std::move(established.socket));
  connection.accept();
  unannounced_.push_back(connection.token());
}

void Transport::start(Connection &connection, bootstrap::PageSocket socket) {
  connection.established(std::move(socket));
  keep_alive_.apply(connection.socket());
  watch(connection.socket(), connection.token(), false);
  attend(connection);
}

void Transport::watch(int fd, std::uint64_t token, bool also_writing) {
  epoll_event event{};
  event.events = EPOLLIN | (also_writing ? EPOLLOUT : 0u);
  event.data.u64 = token;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) != 0) ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
}

void Transport::unwatch(int fd) { ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }

Connection *Transport::find_connection(std::uint64_t token) const {
  const auto found = connections_.find(token);
  return found == connections_.end() ? nullptr : found->second.get();
}

void Transport::leave_all() {
  for (auto &[token, connection] : connections_) connection->close();
  const auto all_gone = [this] {
    return std::ranges::all_of(connections_, [](const auto &entry) {
      return entry.second->state() != Connection::State::kClosing || entry.second->said_goodbye();
    });
  };
  for (const auto deadline = Deadline::in(kGoodbyeTime); !all_gone() && !deadline.passed();) {
    poll();
    dispatch();
    pump_connections();
  }
  while (!connections_.empty()) forget(connections_.begin()->first);
}

// --- memory ---------------------------------------------------------------------------------------------------------------

Result<std::unique_ptr<TransportMemory>> Transport::register_memory(const MemoryRegion &region) {
  return std::unique_ptr<TransportMemory>(std::make_unique<Memory>(*this, region));
}

std::optional<MemoryRegion> Transport::find_memory(const RemoteBuffer &buffer) const {
  const Memory *memory = buffer.slot == 0 ? find(buffer.key) : nullptr;  // else it was not made by this transport
  return memory == nullptr ? std::nullopt : std::optional(memory->region());
}

/// A peer that keeps a transfer going for too long is given up.
void Transport::end_transfers(const Memory &memory) {
  const auto wait = [&] {
    for (const auto deadline = Deadline::in(kPatience); stop_using(memory) > 0 && !deadline.passed();) poll();
    return stop_using(memory) == 0;
  };
  if (wait()) return;
  sever_users_of(memory);
  (void)wait();
}

std::size_t Transport::stop_using(const Memory &memory) {
  std::size_t in_flight = 0;
  for (auto &[token, connection] : connections_) in_flight += connection->transfers().leave(&memory);
  return in_flight;
}

void Transport::sever_users_of(const Memory &memory) {
  for (auto &[token, connection] : connections_)
    if (connection->transfers().leave(&memory) > 0) connection->sever();
}

// --- frames ---------------------------------------------------------------------------------------------------------------

void Transport::note_frame(std::span<const std::byte> bytes) {
  FrameHeader header;
  if (bytes.size() < sizeof header) return;
  std::memcpy(&header, bytes.data(), sizeof header);
  Connection *connection = find_connection(header.token);
  if (connection == nullptr || connection->reapable()) return;
  if (bytes.size() > kMaxFrameBytes || connection->arrived >= kMostArrived)
    return connection->break_protocol("the peer sends what cannot be read, or more than it may");
  ++connection->arrived;
  FrameCopy &copy = copies_.take();
  std::memcpy(copy.bytes.data(), bytes.data(), bytes.size());
  note_frame(std::span<const std::byte>(copy.bytes).first(bytes.size()), &copy);
}

void Transport::give_back(void *slot) { copies_.give_back(*static_cast<FrameCopy *>(slot)); }

/// What the network brings from strangers, who know no token, is not heard.
void Transport::handle(const Arrived &arrived) {
  FrameHeader header;
  if (arrived.bytes.size() < sizeof header) return;
  std::memcpy(&header, arrived.bytes.data(), sizeof header);
  Connection *connection = find_connection(header.token);
  if (connection == nullptr) return;
  if (connection->arrived > 0) --connection->arrived;
  if (const auto frame = decode_frame(arrived.bytes))
    connection->on_frame(*frame);
  else
    connection->break_protocol("the peer sends what cannot be read");
}

std::size_t Transport::dispatch() {
  std::size_t frames = 0;
  announce();
  while (!arrived_.empty()) {
    const Arrived arrived = arrived_.front();
    arrived_.pop_front();
    handle(arrived);
    give_back(arrived.slot);
    finish();  // the next frame may be the last
    ++frames;
  }
  return frames;
}

/// Tells the endpoint of new peers: not from within the listener, but before any of their messages.
void Transport::announce() {
  while (!unannounced_.empty()) {
    Connection *connection = find_connection(unannounced_.front());
    unannounced_.pop_front();
    if (connection) events_.accepted(*connection);
  }
}

// --- progress ---------------------------------------------------------------------------------------------------------------

/// Not each time, if nothing has come for long.
bool Transport::ask_now() {
  const bool idle = connections_.empty() || (++idle_turns_ > kIdleTurns && idle_turns_ % kTurnsPerIdlePoll != 0);
  return !idle || look_;
}

std::size_t Transport::progress() {
  ++depth_;
  std::size_t events = ask_now() ? poll() : 0;
  events += finish();
  events += dispatch();
  // Not while there are frames: their answers come first.
  if ((look_ && events == 0) || ++turns_ % kTurnsPerLook == 0) events += look();
  go_on();
  pump_connections();
  if (!to_settle_.empty()) events += settle(poll() == 0 && !anything_noted());
  if (std::exchange(ask_again_, false)) ++events;
  if (events > 0) idle_turns_ = 0;
  if (--depth_ == 0) reap();
  return events;
}

std::size_t Transport::look() {
  look_around();
  look_ = false;
  std::array<epoll_event, 64> happened;
  const int count = ::epoll_wait(epoll_.get(), happened.data(), happened.size(), 0);
  std::size_t events = 0;
  for (int i = 0; i < count; ++i) {
    const std::uint64_t token = happened[static_cast<std::size_t>(i)].data.u64;
    if (token == kListenerEvent)
      events += listener_->progress();
    else if (token == kLibraryEvent)
      events += on_library();
    else if (Connection *connection = find_connection(token))
      connection->on_socket();
  }
  if (listener_ && listener_->timer().passed()) events += listener_->progress();
  announce();
  return events;
}

void Transport::pump_later(Connection &connection) {
  if (!std::exchange(connection.waits_for_pump, true)) to_pump_.push_back(connection.token());
}

void Transport::pump_connections() {
  if (to_pump_.empty()) return;
  for (const auto token : std::exchange(to_pump_, {})) {
    Connection *connection = find_connection(token);
    if (connection == nullptr) continue;
    connection->waits_for_pump = false;
    if (!connection->pump()) pump_later(*connection);
  }
}

void Transport::finish_later(Connection &connection) {
  if (!std::exchange(connection.waits_for_finish, true)) to_finish_.push_back(connection.token());
}

/// A completion may call anything, and so finish(), too.
std::size_t Transport::finish() {
  if (to_finish_.empty()) return 0;
  const auto tokens = std::exchange(to_finish_, {});
  for (const auto token : tokens) {
    Connection *connection = find_connection(token);
    if (connection == nullptr) continue;
    connection->waits_for_finish = false;
    connection->transfers().finish();
  }
  return tokens.size();
}

void Transport::attend(Connection &connection) {
  if (!std::exchange(connection.is_attended, true)) to_settle_.push_back(connection.token());
}

/// Returns the number of connections that ended.
std::size_t Transport::settle(bool queue_is_empty) {
  std::size_t ended = 0;
  for (const auto token : std::exchange(to_settle_, {})) {
    Connection *connection = find_connection(token);
    if (connection == nullptr) continue;
    connection->is_attended = false;
    connection->settle(queue_is_empty);
    if (connection->reapable())
      ++ended;
    else if (!connection->timer().is_never())
      attend(*connection);
  }
  any_to_reap_ = any_to_reap_ || ended > 0;
  return ended;
}

/// Nobody uses a connection any more.
void Transport::reap() {
  if (!std::exchange(any_to_reap_, false)) return;
  std::vector<std::uint64_t> ended;
  for (const auto &[token, connection] : connections_)
    if (connection->reapable()) ended.push_back(token);
  for (const auto token : ended) forget(token);
}

/// As it goes it may poll, and nobody finds it any more. Its socket is closed then, but a forked process may have it,
/// too.
void Transport::forget(std::uint64_t token) {
  const auto ended = connections_.extract(token);
  if (!ended.empty()) unwatch(ended.mapped()->socket());
}

// --- sleeping -------------------------------------------------------------------------------------------------------------

bool Transport::anything_noted() const { return !arrived_.empty() || !to_finish_.empty() || ask_again_; }

bool Transport::ready() {
  if (anything_noted() || look_) return true;
  return !connections_.empty() && (poll() > 0 || anything_noted());
}

bool Transport::arm() {
  if (anything_noted() || look_) return false;
  if (poll() > 0 || anything_noted()) return false;
  return prepare_to_sleep();
}

void Transport::disarm(bool fd_ready) {
  idle_turns_ = 0;
  look_ = look_ || fd_ready;
}

Deadline Transport::timer() const {
  Deadline first = listener_ ? listener_->timer() : Deadline::never();
  for (const auto token : to_settle_)
    if (const Connection *connection = find_connection(token)) first = first.earlier(connection->timer());
  return first;
}

}  // namespace nnti::framed

// SPDX-License-Identifier: BSD-3-Clause
// The connections of a transport that meets its peers through the bootstrap, over TCP, and then speaks through a
// network library or over lanes: how they are made, their sockets, and for which of them something is due.
//
// A connection, of class C, goes through these of its functions.
//   learn(blob)        what the peer says of itself; returns the token that the peer gave the connection
//   use_lane(socket)   where both sides offer one; for the side that accepted, after accept()
//   established(...)   the bootstrap's socket, whose end is the peer's end
//   accept()           the side that accepted: it is open
//   knock(), reached() the side that connected and has no lane: asks the library; says whether the peer answered
//   open()             the side that connected: it is open
//   on_socket(), pump(), settle(...)   while it lives, as Peers is told to call them
// It is destroyed when it is reapable().
#pragma once

#include "nnti/bootstrap/bootstrap.hpp"
#include "nnti/bootstrap/network_address.hpp"
#include "nnti/stream/hello.hpp"
#include "nnti/stream/lane_connection.hpp"
#include "nnti/transport/transport.hpp"

#include <fmt/core.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace nnti::stream {

/// `T` is the transport: it makes the blob of a connection's hello (hello_for).
template <class T, class C> class Peers {
 public:
  Peers(T &transport, const TransportOptions &options)
      : transport_(transport),
        credential_(options.credential),
        sealed_(options.sealed),
        events_(options.events),
        epoll_(::epoll_create1(EPOLL_CLOEXEC)),
        lanes_(options.poller) {
    watch(lanes_.wait_fd(), kLanesEvent, false);
  }

  /// kInvalidArgument.
  Status configure(const nessie::Config &config, bool library_has_only_tcp) {
    auto keep_alive = KeepAlive::load(config);
    if (!keep_alive.ok()) return keep_alive.error();
    keep_alive_ = *keep_alive;
    const auto lanes = lanes_wanted(config);
    if (!lanes.ok()) return lanes.error();
    offers_lanes_ = *lanes && library_has_only_tcp;
    return {};
  }
  /// Has look() told when the library's descriptor is readable.
  void watch_library(int fd) { watch(fd, kLibraryEvent, false); }

  // --- how peers meet ------------------------------------------------------------------------------------------------
  /// At a port of `host`: nnti.NAME.port. Returns the URL.
  Result<nessie::Url> listen(const nessie::Config &config, const std::string &host) {
    const std::string name(transport_.name());
    const auto setting = fmt::format("nnti.{}.port", name);
    auto port = config.get_int(setting, 0);
    if (!port.ok()) return port.error();
    if (*port < 0 || *port > 65535) return config.bad_value(setting, "a port, 0 (any) to 65535");
    auto socket = bootstrap::listen_tcp(host, static_cast<std::uint16_t>(*port));
    if (!socket.ok()) return socket.error();
    nessie::Url url{name, join_host_port(host, port_of(socket->get())), {}};
    if (is_loopback(host)) url.query["node"] = this_network_node();
    listener_ = std::make_unique<bootstrap::Listener>(
        std::move(*socket), protocol(), credential_, [this](int, bootstrap::Hello &theirs) { return answer(theirs); },
        [this](bootstrap::Established established) { on_accepted(std::move(established)); });
    watch(listener_->wait_fd(), kListenerEvent, false);
    return url;
  }
  Status can_reach(const nessie::Url &url) const {
    auto address = parse_host_port(url.address);
    if (!address.ok()) return address.error();
    if (auto node = url.query.find("node"); node != url.query.end() && node->second != this_network_node())
      return Error{
          Code::kUnsupported,
          fmt::format("it listens at the loopback of another node; set nnti.{}.address there", transport_.name())};
    return {};
  }
  Result<std::unique_ptr<nnti::Connecting>> connect(const nessie::Url &url) {
    auto address = parse_host_port(url.address);
    if (!address.ok()) return address.error();
    auto socket = bootstrap::connect_tcp(address->host, address->port);
    if (!socket.ok()) return socket.error();
    return std::unique_ptr<nnti::Connecting>(
        std::make_unique<Connecting>(*this, make(), std::move(*address), std::move(*socket)));
  }

  // --- all of them ---------------------------------------------------------------------------------------------------
  C *find(std::uint64_t token) {
    auto found = connections_.find(token);
    return found == connections_.end() ? nullptr : found->second.get();
  }
  /// By token.
  const std::unordered_map<std::uint64_t, std::unique_ptr<C>> &all() const { return connections_; }
  LaneSet &lanes() { return lanes_; }
  /// Whether our side may have lanes.
  bool offers_lanes() const { return offers_lanes_; }
  /// Connections that the library carries.
  std::size_t without_lane() const { return connections_.size() - lanes_.size(); }
  const KeepAlive &keep_alive() const { return keep_alive_; }
  /// Says goodbye to everybody. True, until the last words have left: pump() goes on.
  bool say_goodbye() {
    for (auto &[token, connection] : connections_) connection->close();
    return std::any_of(connections_.begin(), connections_.end(), [](const auto &entry) {
      return entry.second->state() == C::State::kClosing && !entry.second->said_goodbye();
    });
  }
  void clear() { connections_.clear(); }

  // --- what is due -----------------------------------------------------------------------------------------------------
  int wait_fd() const { return epoll_.get(); }
  /// Somebody slept on wait_fd().
  void woken(bool fd_ready) {
    idle_turns_ = 0;
    look_ = look_ || fd_ready;
  }
  bool must_look() const { return look_; }
  /// A turn of progress() begins: whether the library and the lanes are to be asked. Not each time, if nothing has come
  /// for long.
  bool ask_now() {
    const bool idle = connections_.empty() || (++idle_turns_ > kIdleTurns && idle_turns_ % kTurnsPerIdlePoll != 0);
    return !idle || look_;
  }
  /// Whether the sockets are to be looked at, in a turn with so many events. Not while there are frames: their answers
  /// come first.
  bool look_now(std::size_t events) { return (look_ && events == 0) || ++turns_ % kTurnsPerLook == 0; }
  /// Looks at them, and at those who connect. `on_library` returns its number of events.
  template <class OnLibrary> std::size_t look(OnLibrary on_library) {
    look_ = false;
    std::array<epoll_event, 64> happened;
    const int count = ::epoll_wait(epoll_.get(), happened.data(), happened.size(), 0);
    std::size_t events = 0;
    for (int i = 0; i < count; ++i) {
      const std::uint64_t token = happened[i].data.u64;
      if (token == kListenerEvent)
        events += listener_->progress();
      else if (token == kLibraryEvent)
        events += on_library();
      else if (token == kLanesEvent)
        events += lanes_.poll();
      else if (C *connection = find(token))
        connection->on_socket();
    }
    if (listener_ && listener_->timer().passed()) events += listener_->progress();
    announce();
    return events;
  }
  /// Tells the endpoint of new peers: not from within the listener, but before any of their messages.
  void announce() {
    while (!unannounced_.empty()) {
      C *connection = find(unannounced_.front());
      unannounced_.pop_front();
      if (connection) events_.accepted(*connection);
    }
  }
  /// Has pump() called.
  void pump_later(C &connection) {
    if (!std::exchange(connection.waits_for_pump, true)) to_pump_.push_back(connection.token());
  }
  void pump() {
    if (to_pump_.empty()) return;
    for (const auto token : std::exchange(to_pump_, {})) {
      C *connection = find(token);
      if (connection == nullptr) continue;
      connection->waits_for_pump = false;
      if (!connection->pump()) pump_later(*connection);
    }
  }
  /// Has settle() called.
  void attend(C &connection) {
    if (std::find(to_settle_.begin(), to_settle_.end(), connection.token()) == to_settle_.end())
      to_settle_.push_back(connection.token());
  }
  bool any_to_settle() const { return !to_settle_.empty(); }
  /// `queue_is_empty`: nothing more of a peer that has ended is to come. Returns the number of connections that ended.
  std::size_t settle(bool queue_is_empty) {
    std::size_t ended = 0;
    for (const auto token : std::exchange(to_settle_, {})) {
      C *connection = find(token);
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
  /// The turn of progress() is over, with so many events.
  void end_turn(std::size_t events) {
    if (events > 0) idle_turns_ = 0;
  }
  /// Nobody uses a connection any more.
  void reap() {
    if (!std::exchange(any_to_reap_, false)) return;
    std::erase_if(connections_, [](const auto &entry) { return entry.second->reapable(); });
  }
  void forget_socket(C &connection) {
    if (connection.socket() >= 0) unwatch(connection.socket());
  }
  Deadline timer() const {
    Deadline first = listener_ ? listener_->timer() : Deadline::never();
    for (const auto token : to_settle_)
      if (auto found = connections_.find(token); found != connections_.end())
        first = first.earlier(found->second->timer());
    return first;
  }

 private:
  // In epoll. Everything else is a connection's token.
  static constexpr std::uint64_t kListenerEvent = 0, kLibraryEvent = 1, kLanesEvent = 2;
  static constexpr unsigned kTurnsPerLook = 256;
  static constexpr unsigned kIdleTurns = 256;       ///< after so many, it is asked only every
  static constexpr unsigned kTurnsPerIdlePoll = 8;  ///< so many turns

  /// The bootstrap's connecting side; then, where both sides may have one, the lane's; else what the library needs.
  class Connecting final : public nnti::Connecting {
   public:
    Connecting(Peers &peers, C &connection, HostPort address, nessie::Fd socket)
        : peers_(peers), connection_(&connection), address_(std::move(address)) {
      begin(std::move(socket), peers.transport_.hello_for(connection));
    }
    ~Connecting() override {
      if (connector_) peers_.unwatch(connector_->fd());
      if (connection_) peers_.connections_.erase(connection_->token());
    }

    std::optional<Result<nnti::Connection *>> advance() override {
      using Outcome = Result<nnti::Connection *>;
      if (connector_) {
        auto outcome = connector_->advance();
        if (!outcome) {
          peers_.watch(connector_->fd(), connection_->token(), connector_->wants_write());
          return std::nullopt;
        }
        if (!outcome->ok()) return Outcome(outcome->error());
        auto status = socket_ ? on_lane(**outcome) : on_answer(**outcome);
        if (!status.ok()) return Outcome(status.error());
        if (connector_) return std::nullopt;
      }
      auto reached = connection_->reached();
      if (!reached.ok()) return Outcome(reached.error());
      if (!*reached) return std::nullopt;
      connection_->open();
      return Outcome(std::exchange(connection_, nullptr));
    }

   private:
    void begin(nessie::Fd socket, std::vector<std::byte> hello) {
      connector_.emplace(std::move(socket), peers_.protocol(), peers_.credential_,
                         bootstrap::Hello{std::move(hello), {}});
      peers_.watch(connector_->fd(), connection_->token(), true);
    }
    Status on_answer(bootstrap::Established &established) {
      auto token = connection_->learn(established.theirs.blob);
      if (!token.ok()) return token.error();
      socket_.emplace(std::move(established.socket));
      if (connection_->peer_offers_lane() && peers_.offers_lanes_) return ask_for_lane(*token);
      connector_.reset();
      peers_.start(*connection_, std::move(*socket_));
      return connection_->knock();
    }
    Status ask_for_lane(std::uint64_t token) {
      auto socket = bootstrap::connect_tcp(address_.host, address_.port);
      if (!socket.ok()) return socket.error();
      begin(std::move(*socket), encode_lane_hello(token));
      return {};
    }
    Status on_lane(bootstrap::Established &established) {
      peers_.unwatch(established.socket.fd());
      connection_->use_lane(established.socket.take());
      connector_.reset();
      peers_.start(*connection_, std::move(*socket_));
      return {};
    }

    Peers &peers_;
    C *connection_;
    HostPort address_;
    std::optional<bootstrap::Connector> connector_;
    std::optional<bootstrap::PageSocket> socket_;  ///< once the peer has answered
  };

  std::string protocol() const { return bootstrap::protocol_name(transport_.name(), sealed_); }
  C &make() {
    const auto token = std::max<std::uint64_t>(nessie::random_u64(), kLanesEvent + 1);
    return *(connections_[token] = std::make_unique<C>(transport_, token));
  }
  Result<bootstrap::Hello> answer(bootstrap::Hello &theirs) {
    if (const auto token = decode_lane_hello(theirs.blob)) return answer_lane(*token);
    C &connection = make();
    if (auto known = connection.learn(theirs.blob); !known.ok()) {
      connections_.erase(connection.token());
      return known.error();
    }
    answering_ = &connection;
    return bootstrap::Hello{transport_.hello_for(connection), {}};
  }
  /// A lane for a connection that has been made, and over which nothing was said yet.
  Result<bootstrap::Hello> answer_lane(std::uint64_t token) {
    C *connection = find(token);
    if (connection == nullptr || !connection->may_be_given_lane() || !offers_lanes_)
      return Error{Code::kBusy, "the connection that the lane is for is gone; connect again", nessie::Scope::kPeer};
    answering_lane_ = connection;
    return bootstrap::Hello{encode_lane_hello(token), {}};
  }
  void on_accepted(bootstrap::Established established) {
    if (C *with_lane = std::exchange(answering_lane_, nullptr)) return with_lane->use_lane(established.socket.take());
    C &connection = *std::exchange(answering_, nullptr);
    start(connection, std::move(established.socket));
    connection.accept();
    unannounced_.push_back(connection.token());
  }
  void start(C &connection, bootstrap::PageSocket socket) {
    connection.established(std::move(socket));
    keep_alive_.apply(connection.socket());
    watch(connection.socket(), connection.token(), false);
    attend(connection);
  }
  void watch(int fd, std::uint64_t token, bool also_writing) {
    epoll_event event{};
    event.events = EPOLLIN | (also_writing ? EPOLLOUT : 0u);
    event.data.u64 = token;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) != 0) ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
  }
  void unwatch(int fd) { ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }

  T &transport_;
  const nessie::Credential &credential_;
  const bool sealed_;
  TransportEvents &events_;
  KeepAlive keep_alive_;
  nessie::Fd epoll_;
  LaneSet lanes_;  ///< outlives the connections
  bool offers_lanes_ = false;
  std::unordered_map<std::uint64_t, std::unique_ptr<C>> connections_;
  std::vector<std::uint64_t> to_pump_, to_settle_;
  C *answering_ = nullptr;  ///< between the listener's answer and accept
  C *answering_lane_ = nullptr;
  std::deque<std::uint64_t> unannounced_;  ///< accepted, of whom the endpoint does not know yet
  std::unique_ptr<bootstrap::Listener> listener_;
  bool look_ = true;
  bool any_to_reap_ = false;
  unsigned turns_ = 0, idle_turns_ = 0;
};

}  // namespace nnti::stream

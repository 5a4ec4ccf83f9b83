// SPDX-License-Identifier: BSD-3-Clause
// A transport whose peers meet through the bootstrap, over TCP, and then speak in frames through a network: how its
// connections are made, their sockets, and for which of them something is due. A transport derives from it, and says
// what its network has to tell.
#pragma once

#include "nnti/framed/connection.hpp"
#include "nnti/framed/pool.hpp"

#include <array>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace nnti::framed {

/// What a transport adds to its explanation where the transport tcp is taken in its place.
inline constexpr const char *kOnlyIfNamed =
    "; it has nothing but TCP here: used only if named, for the transport tcp is faster";

class Transport : public nnti::Transport, public Home {
 public:
  std::string_view name() const override { return name_; }
  Reliability reliability() const override { return Reliability::kUntilBroken; }
  std::string url() const override { return url_; }
  Status can_reach(const nessie::Url &url) const override;
  Result<std::unique_ptr<nnti::Connecting>> connect(const nessie::Url &url, Deadline deadline) override;
  Result<std::unique_ptr<TransportMemory>> register_memory(const MemoryRegion &region) override;
  std::optional<MemoryRegion> find_memory(const RemoteBuffer &buffer) const override;
  std::size_t progress() override;
  bool ready() override;
  int wait_fd() const override { return epoll_.get(); }
  bool arm() override;
  void disarm(bool fd_ready) override;
  Deadline timer() const override;

  // Home
  nnti::Transport &transport() override { return *this; }
  TransportEvents &events() override { return events_; }
  void pump_later(Connection &connection) override;
  void attend(Connection &connection) override;
  void finish_later(Connection &connection) override;
  void ask_again() override { ask_again_ = true; }
  void work() override { poll(); }
  Result<bootstrap::Connector> connect_again(const HostPort &address, std::vector<std::byte> hello) override;
  void watch(int fd, std::uint64_t token, bool also_writing) override;
  void unwatch(int fd) override;

 protected:
  using Connections = std::unordered_map<std::uint64_t, std::unique_ptr<Connection>>;  ///< by token

  /// `name` is borrowed.
  Transport(std::string_view name, const TransportOptions &options);
  /// kInvalidArgument.
  Status configure(const nessie::Config &config);
  /// Listens at a port of `host`: nnti.NAME.port; or where nnti.listen_at says. The URL, to be completed, and set.
  Result<nessie::Url> listen(const nessie::Config &config, const std::string &host);
  void set_url(const nessie::Url &url) { url_ = url.to_string(); }
  /// Has on_library() called when the network's descriptor is readable.
  void watch_library(int fd) { watch(fd, kLibraryEvent, false); }
  /// Says goodbye to everybody, gives what was sent a moment to leave, and forgets them. To be called at the beginning
  /// of the destructor.
  void leave_all();

  // --- what the network has to tell ------------------------------------------------------------------------------------
  virtual std::unique_ptr<Connection> make_connection(std::uint64_t token) = 0;
  /// Asks the network what happened, and notes it; calls nobody. Returns the number of things.
  virtual std::size_t poll() = 0;
  /// There is something to be worked off.
  virtual bool anything_noted() const;
  /// In each turn of progress(), after frames were handled.
  virtual void go_on() {}
  /// Now and then, when sockets are looked at.
  virtual void look_around() {}
  /// The network's descriptor was readable.
  virtual std::size_t on_library() { return poll(); }
  /// Somebody is about to sleep on wait_fd(). False: there is something to do.
  virtual bool prepare_to_sleep() { return true; }
  /// Another conversation of the bootstrap's, of a connection that has been made; empty: it is the first of one.
  virtual std::optional<Result<bootstrap::Hello>> answer_again(const bootstrap::Hello & /*theirs*/) { return {}; }
  virtual bool established_again(bootstrap::Established & /*established*/) { return false; }
  /// Begins nothing more that touches `memory`; returns the number of pieces in flight that still do.
  virtual std::size_t stop_using(const Memory &memory);
  /// Ends the connections that have some.
  virtual void sever_users_of(const Memory &memory);

  /// A frame that arrived, in memory that give_back(slot) gives back.
  void note_frame(std::span<const std::byte> bytes, void *slot) { arrived_.push_back({bytes, slot}); }
  virtual void give_back(void *slot);
  /// A frame that arrived, to be copied.
  void note_frame(std::span<const std::byte> bytes);

  Connection *find_connection(std::uint64_t token) const;
  const Connections &connections() const { return connections_; }
  const KeepAlive &keep_alive() const { return keep_alive_; }

 private:
  class Connecting;
  struct Arrived {
    std::span<const std::byte> bytes;
    void *slot;
  };
  struct FrameCopy {
    std::array<std::byte, kMaxFrameBytes> bytes;
  };

  void end_transfers(const Memory &memory) override;
  Result<HostPort> place_at(const nessie::Config &config, const std::string &host) const;
  std::string protocol() const { return bootstrap::protocol_name(name_, sealed_); }
  Connection &make();
  Result<bootstrap::Hello> answer(bootstrap::Hello &theirs);
  void on_accepted(bootstrap::Established established);
  void start(Connection &connection, bootstrap::PageSocket socket);
  bool ask_now();
  std::size_t finish();
  std::size_t dispatch();
  void handle(const Arrived &arrived);
  std::size_t look();
  void announce();
  void pump_connections();
  std::size_t settle(bool queue_is_empty);
  void reap();
  void forget(std::uint64_t token);

  const std::string_view name_;
  const nessie::Credential &credential_;
  const bool sealed_;
  TransportEvents &events_;
  std::string url_;
  KeepAlive keep_alive_;
  nessie::Fd epoll_;
  Connections connections_;
  std::unique_ptr<bootstrap::Listener> listener_;
  Connection *answering_ = nullptr;        ///< between the listener's answer and accept
  std::deque<std::uint64_t> unannounced_;  ///< accepted, of whom the endpoint does not know yet
  std::deque<Arrived> arrived_;
  Pool<FrameCopy> copies_;
  std::vector<std::uint64_t> to_pump_, to_settle_, to_finish_;
  bool ask_again_ = false, look_ = true, any_to_reap_ = false;
  unsigned turns_ = 0, idle_turns_ = 0;
  int depth_ = 0;

  // In epoll. Everything else is a connection's token.
  static constexpr std::uint64_t kListenerEvent = 0, kLibraryEvent = 1;
};

}  // namespace nnti::framed

// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "nnti/bootstrap.hpp"
#include "nnti/transports/shm/connection.hpp"
#include "nnti/transports/shm/table.hpp"

#include <deque>
#include <vector>

namespace nnti::shm {

class ShmTransport final : public Transport {
 public:
  static Result<std::unique_ptr<ShmTransport>> make(const TransportOptions &options);
  ~ShmTransport() override;

  std::string_view name() const override { return "shm"; }
  std::string url() const override;
  Status can_reach(const nessie::Url &url) const override;
  Result<std::unique_ptr<Connecting>> connect(const nessie::Url &url, Deadline deadline) override;
  Result<std::unique_ptr<TransportMemory>> register_memory(const MemoryRegion &region) override;
  std::optional<MemoryRegion> find_memory(const RemoteBuffer &buffer) const override;
  std::size_t progress() override;
  bool ready() override;
  int wait_fd() const override { return kInPoller; }
  bool arm() override;
  void disarm(bool) override;
  Deadline timer() const override { return listener_ ? listener_->timer() : Deadline::never(); }

  TransportEvents &events() { return events_; }
  std::uint64_t slots() const { return slots_; }
  const EndpointTable &table() const { return table_->table(); }
  const nessie::Credential &credential() const { return credential_; }
  /// What we tell a peer; `segment` is -1 on the accepting side.
  bootstrap::Hello hello(int segment) const;
  /// Checks and maps what a peer told us. `their_segment`: it is the connecting side, and sent the segment.
  Result<PeerParts> take_hello(int socket, bootstrap::Hello &theirs, bool their_segment) const;
  ShmConnection *add_connection(bootstrap::PageSocket socket, PeerParts parts);
  /// For a connection being made: its socket wakes waits, and nothing else.
  void watch_connecting(int fd) { poller_.watch(fd, quiet_); }
  void unwatch(int fd) { poller_.unwatch(fd); }
  /// progress() shall look at the sockets that were noted as ready.
  void look_at_sockets_soon() { look_at_sockets_now_ = true; }
  /// Refuses the key, waits until no peer is in the middle of a transfer, and frees the slot.
  void end_registration(const RemoteBuffer &buffer, bool is_shared);

 private:
  ShmTransport(const TransportOptions &options, OwnTable table, bool use_cma, std::uint64_t slots);
  Status listen();
  std::size_t look_at_sockets();
  void sweep_mappings();

  struct Quiet final : Poller::Handler {
    void on_fd_ready() override {}
  };
  /// A ring says that there are messages, which are looked for anyway, or that registrations have ended.
  struct Rung final : Poller::Handler {
    explicit Rung(ShmTransport &owner) : transport(owner) {}
    void on_fd_ready() override { transport.sweep_now_ = true; }
    ShmTransport &transport;
  };
  struct Listening final : Poller::Handler {
    explicit Listening(ShmTransport &owner) : transport(owner) {}
    void on_fd_ready() override { transport.look_at_sockets_now_ = ready = true; }
    ShmTransport &transport;
    bool ready = false;
  };
  std::size_t report_accepted();
  void reap();

  const nessie::Credential &credential_;
  TransportEvents &events_;
  std::optional<OwnTable> table_;
  bool use_cma_;
  std::uint64_t slots_;  ///< of the mailboxes of connections that we make
  bool asymmetric_fence_;
  std::uint64_t probe_;
  std::string socket_name_;
  Poller &poller_;
  Quiet quiet_;
  Rung rung_{*this};
  Listening listening_{*this};
  Fd doorbell_;  ///< watched for its edges: never read
  std::unique_ptr<bootstrap::Listener> listener_;
  std::optional<PeerParts> answered_;  ///< between the listener's Answer and Accept
  std::vector<std::unique_ptr<ShmConnection>> connections_;
  std::deque<ShmConnection *> accepted_;  ///< not reported yet
  unsigned turns_ = 0;
  bool look_at_sockets_now_ = false, sweep_now_ = false;
  bool anything_closed_ = false;
  int depth_ = 0;
};

}  // namespace nnti::shm

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
  int wait_fd() const override { return epoll_.get(); }
  bool arm() override;
  void disarm(bool fd_ready) override;
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
  void watch(int fd, void *whom);
  void unwatch(int fd);
  /// Refuses the key, waits until no peer is in the middle of a transfer, and frees the slot.
  void end_registration(const RemoteBuffer &buffer, bool is_shared);

 private:
  ShmTransport(const TransportOptions &options, OwnTable table, bool use_cma, std::uint64_t slots);
  Status listen();
  std::size_t look_at_sockets();
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
  Fd epoll_, doorbell_;
  std::unique_ptr<bootstrap::Listener> listener_;
  std::optional<PeerParts> answered_;  ///< between the listener's Answer and Accept
  std::vector<std::unique_ptr<ShmConnection>> connections_;
  std::deque<ShmConnection *> accepted_;  ///< not reported yet
  unsigned turns_ = 0;
  bool look_at_sockets_now_ = false;
  bool anything_closed_ = false;
  int depth_ = 0;
};

}  // namespace nnti::shm

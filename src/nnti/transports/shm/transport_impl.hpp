// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "nnti/bootstrap/bootstrap.hpp"
#include "nnti/transports/shm/connection.hpp"
#include "nnti/transports/shm/own_queue.hpp"
#include "nnti/transports/shm/seats.hpp"

#include <deque>
#include <vector>

namespace nnti::shm {

class ShmTransport final : public Host, private OwnQueue::Receiver {
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

  const nessie::Credential &credential() const { return credential_; }
  const std::string &protocol() const { return protocol_; }
  const ShmSettings &settings() const { return settings_; }

  /// What we tell a peer that we connect to, and what one that connected to us.
  Result<bootstrap::Hello> hello() const;
  Result<bootstrap::Hello> answer_to(const PeerParts &parts) const;
  /// Checks and maps what a peer told us. `accepted`: it is the connecting side.
  Result<PeerParts> take_hello(int socket, bootstrap::Hello &theirs, bool accepted) const;
  /// Seats it; the peer has proved the credential.
  Status seat(PeerParts &parts);
  ShmConnection *add_connection(bootstrap::PageSocket socket, PeerParts parts);

  /// Refuses the key, waits until no peer is in the middle of a transfer, and frees the slot.
  void end_registration(const RemoteBuffer &buffer, bool is_shared);

  void watch(int fd, std::uint64_t whom, bool to_write) override;
  void unwatch(int fd) override;
  void leave_seat(std::uint32_t seat, nessie::Fd socket) override;
  void empty_seat(std::uint32_t seat, std::uint64_t drain_to) override;
  QueueMemory queue_memory() const override { return {queue_->fd(), queue_->entries()}; }
  std::uint64_t queue_read() const override { return queue_->next(); }
  std::uint64_t queue_end_of(std::uint32_t seat) const override { return queue_->end_of(seat); }

 private:
  ShmTransport(const TransportOptions &options, OwnTable table, const ShmSettings &settings);
  Result<std::string> name_to_listen_at(const nessie::Config &config) const;
  Status listen(const nessie::Config &config);
  HelloBlob blob() const;
  Result<bootstrap::Hello> hello_of(const HelloBlob &blob, std::initializer_list<int> descriptors) const;
  Status take_choice(const HelloBlob &blob, PeerParts &parts) const;
  Status take_answer(const HelloBlob &blob, const bootstrap::Hello &theirs, PeerParts &parts) const;
  std::size_t look_at_sockets();
  void look_at(std::uint64_t whom);
  std::size_t report_accepted();
  std::size_t attend_connections();
  std::size_t read_queue();
  Status provide_queue();
  void give_queue_up();
  void clean_up();
  void deliver(ShmConnection &from, const Message &message, std::span<const std::byte> bytes) override;
  void reject(ShmConnection &from) override;

  /// A ring says that there are messages, which are looked for anyway, or that registrations have ended.
  struct Rung final : Poller::Handler {
    explicit Rung(ShmTransport &owner) : transport(owner) {}
    void on_fd_ready() override { transport.sweep_now_ = true; }
    ShmTransport &transport;
  };
  void sweep_mappings();

  const nessie::Credential &credential_;
  const std::string protocol_;
  bool asymmetric_fence_;
  std::string socket_name_;
  nessie::Fd epoll_;  ///< sockets
  Poller &poller_;
  Rung rung_{*this};
  nessie::Fd doorbell_;  ///< in the poller, by its edges: never read
  std::unique_ptr<bootstrap::Listener> listener_;
  std::optional<PeerParts> answered_;  ///< between the listener's Answer and Accept
  std::vector<std::unique_ptr<ShmConnection>> connections_;
  std::deque<ShmConnection *> accepted_;  ///< not reported yet
  Seats seats_;
  std::unique_ptr<OwnQueue> queue_;
  std::vector<std::unique_ptr<OwnQueue>> broken_queues_;  ///< may still be in use by an outer progress()
  bool look_at_sockets_now_ = false, sweep_now_ = false;
  bool must_clean_up_ = false;
};

}  // namespace nnti::shm

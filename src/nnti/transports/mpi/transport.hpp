// SPDX-License-Identifier: BSD-3-Clause
// NNTI over MPI, two-sided underneath.
//
// Design notes. Each endpoint receives its frames at a tag of its own (its *port*) of its world's communicator, into
// receives that are always posted; which connection a frame is for, its token says. Bulk data goes on tags of its own
// (flow.hpp). What MPI reports is only noted while it is polled (poll()); it is worked off in progress().
//
// MPI makes progress for the process as a whole: whichever endpoint polls moves the data of all.
#pragma once

#include "nnti/transport/transport.hpp"
#include "nnti/transports/mpi/connection.hpp"
#include "nnti/transports/mpi/flow.hpp"
#include "nnti/transports/mpi/world.hpp"

#include <atomic>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace nnti::mpi {

TransportInfo survey(const nessie::Config &config);
Result<std::unique_ptr<Transport>> open(const TransportOptions &options);

class MpiTransport final : public Transport, public Home, private Tenant {
 public:
  MpiTransport(const TransportOptions &options, World &world);
  ~MpiTransport() override;
  Status move_in();

  std::string_view name() const override { return "mpi"; }
  std::string url() const override { return url_; }
  Status can_reach(const nessie::Url &url) const override;
  Result<std::unique_ptr<Connecting>> connect(const nessie::Url &url, Deadline deadline) override;
  Result<std::unique_ptr<TransportMemory>> register_memory(const MemoryRegion &region) override;
  std::optional<MemoryRegion> find_memory(const RemoteBuffer &buffer) const override;
  std::size_t progress() override;
  bool ready() override;
  int wait_fd() const override { return -1; }
  bool arm() override;
  void disarm(bool) override { armed_ = false; }
  Deadline timer() const override;

  // Home
  Transport &transport() override { return *this; }
  World &world() override { return world_; }
  int port() const override { return port_; }
  TransportEvents &events() override { return events_; }
  const nessie::Credential &credential() const override { return credential_; }
  bool post_frame(MpiConnection &connection, Address to, const FrameHeader &header,
                  std::span<const std::byte> body) override;
  bool post_bytes(MpiConnection &connection, Address to, std::span<const std::byte> head,
                  std::span<const std::byte> body) override;
  void pump_later(MpiConnection &connection) override;
  void attend(MpiConnection &connection) override;
  Flow &new_flow(Flow::Direction direction, int rank, int tag, std::span<std::byte> memory) override;
  void touch(Flow &flow) override;
  bool poll_until(const std::function<bool()> &state, Deadline deadline) override;

 private:
  /// A frame on its way to a peer.
  struct Slot : Work {
    Slot() : Work(Kind::kSend) {}
    std::uint64_t token = 0;  ///< of the connection
    std::array<std::byte, kMaxFrameBytes> bytes;
  };
  /// A receive, and what it received.
  struct Receive {
    MPI_Request request = MPI_REQUEST_NULL;
    int rank = 0;
    std::size_t size_bytes = 0;
    std::array<std::byte, kMaxFrameBytes> bytes;
  };
  struct Knock {
    Hello hello;
    int rank;
  };
  /// What MPI may still touch when the transport goes.
  struct Lent {
    std::deque<Slot> slots;
    std::list<Flow> flows;
    RequestSet requests;
  };

  bool on_knock(const Hello &hello, int rank) override;
  void on_mpi_end() override;

  void end_transfers(const framed::Memory &memory) override;
  MpiConnection &new_connection(Address address);
  MpiConnection *find_peer(std::uint64_t token);
  Status post_receives();
  void post_free_receives();
  void arrive(Receive &receive, int rc, const MPI_Status &status);
  std::size_t poll();
  std::size_t poll_receives();
  std::size_t look_further();
  std::size_t poll_requests();
  std::size_t receive_frames();
  std::size_t dispatch();
  void continue_flows();
  void sweep_flows();
  std::size_t answer_knocks();
  void pump_connections();
  std::size_t settle_connections();
  void reap();
  void end_with_mpi();
  void withdraw();
  void say_goodbye();

  World &world_;
  const nessie::Credential &credential_;
  TransportEvents &events_;
  std::string url_;
  int port_ = 0;
  std::atomic<bool> listening_{false}, mpi_ended_{false};
  std::mutex knocks_mutex_;
  std::vector<Knock> knocks_;
  std::atomic<bool> knocked_{false};

  std::deque<Receive> receives_;
  std::deque<Receive *> posted_, arrived_;  ///< in the order of their posting, and of their completion
  std::vector<Receive *> free_receives_;
  std::vector<MPI_Request> looked_at_;
  std::vector<int> indices_;
  std::vector<MPI_Status> statuses_;

  std::shared_ptr<Lent> lent_ = std::make_shared<Lent>();
  std::vector<Slot *> free_slots_;
  std::vector<RequestSet::Finished> finished_;
  std::vector<Flow *> touched_;
  bool sweep_ = false;

  std::unordered_map<std::uint64_t, std::unique_ptr<MpiConnection>> connections_;  ///< by token
  MpiConnection *last_found_ = nullptr;
  std::vector<std::uint64_t> to_pump_, to_attend_;
  std::deque<std::uint64_t> half_open_;
  bool any_to_reap_ = false;
  bool frames_flow_ = false;  ///< the last turn found one
  bool armed_ = false;        ///< the caller sleeps, and asks rarely
  int depth_ = 0;
  unsigned turns_ = 0, idle_polls_ = 0;
};

}  // namespace nnti::mpi

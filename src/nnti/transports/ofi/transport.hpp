// SPDX-License-Identifier: BSD-3-Clause
// The network, through libfabric.
//
// Design notes. Providers end the whole connection when a peer presents a key that is not, or no longer, valid: a late
// access to a buffer would cost all messages under way. So a registered buffer is never exposed to the fabric. A peer
// that wants to get or put sends a frame that names the buffer by our own, unguessable key, and exposes its own side of
// this one transfer; we check key, bounds and rights, and write or read. What fits a frame travels in it. A software
// provider needs the owner's processor for a transfer anyway.
//
// One libfabric endpoint serves all peers. The bootstrap's TCP socket stays open, and its end is the peer's death.
// What libfabric reports is only noted while the queue is read (poll_queue); it is worked off in progress().
#pragma once

#include "nnti/stream/peers.hpp"
#include "nnti/transport/transport.hpp"
#include "nnti/transports/ofi/connection.hpp"
#include "nnti/transports/ofi/memory.hpp"
#include "nnti/transports/ofi/slots.hpp"

#include <chrono>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

namespace nnti::ofi {

/// As nnti::prepare_environment.
void prepare_environment();
TransportInfo survey(const nessie::Config &config);
Result<std::unique_ptr<Transport>> open(const TransportOptions &options);

class OfiTransport final : public Transport {
 public:
  OfiTransport(const TransportOptions &options, std::unique_ptr<Fabric> fabric);
  ~OfiTransport() override;
  Status start(const nessie::Config &config, bool listen);

  std::string_view name() const override { return "ofi"; }
  Reliability reliability() const override { return Reliability::kUntilBroken; }
  std::string url() const override { return url_; }
  Status can_reach(const nessie::Url &url) const override;
  Result<std::unique_ptr<Connecting>> connect(const nessie::Url &url, Deadline deadline) override;
  Result<std::unique_ptr<TransportMemory>> register_memory(const MemoryRegion &region) override;
  std::optional<MemoryRegion> find_memory(const RemoteBuffer &buffer) const override;
  std::size_t progress() override;
  bool ready() override;
  int wait_fd() const override { return peers_.wait_fd(); }
  bool arm() override;
  void disarm(bool fd_ready) override { peers_.woken(fd_ready || watch_at_.passed()); }
  Deadline timer() const override;

  // --- for connections and memory --------------------------------------------------------------------------------------
  Fabric &fabric() { return *fabric_; }
  stream::Peers<OfiTransport, OfiConnection> &peers() { return peers_; }
  TransportEvents &events() { return events_; }
  /// The blob of a new connection's Hello.
  std::vector<std::byte> hello_for(const OfiConnection &connection) const;
  /// As many as all peers may need.
  void post_receives();
  /// Copies a frame to the provider. False: not now; or it broke the connection.
  bool post_frame(OfiConnection &connection, const FrameHeader &header, std::span<const std::byte> body);
  /// A frame that came over a connection's lane. False: it is none, or of another.
  bool note_frame(const OfiConnection &connection, std::span<const std::byte> bytes);
  stream::TransfersHost::Target target_of_put(std::uint64_t key, std::uint64_t offset, std::uint64_t length) const;
  /// Reads what the provider has to say after a peer was removed.
  void drain_queue() { poll(); }
  void add_memory(Memory &memory) { memories_.emplace(memory.key(), &memory); }
  void remove_memory(Memory &memory);
  void serve(OfiConnection &connection, const Frame &frame);
  /// Returns when nothing that `connection` asked for, and that has left the fabric, touches memory any more.
  void end_transfers(const OfiConnection &connection);

 private:
  struct Served;
  struct Chunk : Work {
    Served *served = nullptr;
    RegistrationCache::Lease lease;  ///< until the completion
  };
  /// An access of a peer to memory of ours, under way.
  struct Served {
    std::uint64_t token = 0;  ///< of the connection
    FrameHeader request;
    Memory *memory = nullptr;
    std::uint64_t next = 0;  ///< bytes begun
    std::size_t in_flight = 0;
    Code result = Code::kOk;
    fi_addr_t address = FI_ADDR_UNSPEC;
    bool over() const { return in_flight == 0 && (result != Code::kOk || next == request.length); }
  };
  struct Arrived {
    Slot *slot;
    std::size_t size_bytes;
  };

  /// Some connections have no lane.
  bool uses_library() const { return peers_.without_lane() > 0; }
  std::size_t poll();
  std::size_t poll_queue();
  void on_completion(Work &work, std::size_t size_bytes, int error);
  void on_failed_chunk(Served &served, int error);
  void read_error();
  std::size_t dispatch();
  std::size_t look_at_sockets();
  void watch_frames();
  bool post_receive(Slot &slot);
  std::size_t wanted_receives() const;

  void begin_chunks(Served &served);
  bool begin_chunk(Served &served, std::uint64_t length);
  void continue_served();
  void finish_served(std::list<Served>::iterator served);
  template <class Which> std::size_t refuse_served(Which which);
  template <class Which> bool wait_for_served(Which which);

  TransportEvents &events_;
  std::unique_ptr<Fabric> fabric_;
  stream::Peers<OfiTransport, OfiConnection> peers_;
  std::string url_;
  SlotPool slots_;  ///< what the library carries
  SlotPool lane_slots_{nullptr, kMaxFrameBytes};
  std::deque<Chunk> chunks_;
  std::vector<Chunk *> free_chunks_;
  std::size_t receives_posted_ = 0;
  std::deque<Arrived> arrived_;
  std::unordered_map<std::uint64_t, Memory *> memories_;
  std::list<Served> served_;

  Deadline watch_at_ = Deadline::now();  ///< when to look for connections whose frames may be lost
  bool stalled_ = false;                 ///< the provider took no more; try again soon
  int depth_ = 0;
};

}  // namespace nnti::ofi

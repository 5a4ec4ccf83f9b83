// SPDX-License-Identifier: BSD-3-Clause
// The network, through UCX.
//
// Design notes. Everything goes as active messages, to the worker of the side that must act: a peer that wants to get
// or put names the buffer by our own, unguessable key; we check key, bounds and rights where the memory is, and no peer
// is given UCX's own key to it. So a dead key is always refused, and a late access costs nobody's connection.
//
// One UCX worker serves all peers. The bootstrap's TCP socket stays open, and its end is the peer's death. What UCX
// reports is only noted while it makes progress (poll); it is worked off in progress().
#pragma once

#include "nnti/stream/peers.hpp"
#include "nnti/transport/transport.hpp"
#include "nnti/transports/ucx/connection.hpp"
#include "nnti/transports/ucx/memory.hpp"
#include "nnti/transports/ucx/pool.hpp"

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

namespace nnti::ucx {

TransportInfo survey(const nessie::Config &config);
Result<std::unique_ptr<Transport>> open(const TransportOptions &options);

class UcxTransport final : public Transport, private WorkerEvents {
 public:
  explicit UcxTransport(const TransportOptions &options);
  ~UcxTransport() override;
  Status start(const nessie::Config &config, bool listen);

  std::string_view name() const override { return "ucx"; }
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
  void disarm(bool fd_ready) override { peers_.woken(fd_ready); }
  Deadline timer() const override;

  // --- for connections and memory --------------------------------------------------------------------------------------
  Worker &worker() { return *worker_; }
  stream::Peers<UcxTransport, UcxConnection> &peers() { return peers_; }
  TransportEvents &events() { return events_; }
  /// The blob of a new connection's Hello.
  std::vector<std::byte> hello_for(const UcxConnection &connection) const;
  /// Has the endpoint ask its Connectings again.
  void ask_again() { ask_again_ = true; }
  ucs_status_t send_frame(UcxConnection &connection, Link &link, const FrameHeader &header,
                          std::span<const std::byte> body);
  /// A frame that came over a connection's lane. False: it is none, or of another.
  bool note_frame(const UcxConnection &connection, std::span<const std::byte> bytes);
  Pool<ChunkSlot> &chunks() { return chunks_; }
  /// Has finish() of its transfers called from progress().
  void attend_transfers(UcxConnection &connection);
  /// Returns when nothing is in flight any more, or after a while.
  void wait_for_transfers(const std::function<std::size_t()> &in_flight);
  void add_memory(Memory &memory) { memories_.emplace(memory.key(), &memory); }
  void remove_memory(Memory &memory);
  const Memory *memory_with(std::uint64_t key) const;

 private:
  void on_frame(std::span<const std::byte> bytes) override;
  bool on_chunk(std::span<const std::byte> header, const Payload &payload) override;
  void on_complete(Work &work, ucs_status_t status) override;
  void on_failure(std::uint64_t token, ucs_status_t status) override;

  struct Arrived {
    FrameSlot *slot;
    std::size_t size_bytes;
  };

  std::size_t poll();
  std::size_t poll_worker();
  /// Some connections have no lane.
  bool uses_library() const { return peers_.without_lane() > 0; }
  bool anything_noted() {
    return !arrived_.empty() || !with_ended_transfers_.empty() || peers_.lanes().anything_to_finish() || ask_again_;
  }
  std::size_t dispatch();
  std::size_t finish_transfers();

  TransportEvents &events_;
  std::unique_ptr<Worker> worker_;
  stream::Peers<UcxTransport, UcxConnection> peers_;
  std::string url_;
  Pool<FrameSlot> frames_;
  Pool<ChunkSlot> chunks_;
  std::deque<Arrived> arrived_;
  std::unordered_map<std::uint64_t, Memory *> memories_;
  std::vector<std::uint64_t> with_ended_transfers_;
  bool ask_again_ = false;
  int depth_ = 0;
};

}  // namespace nnti::ucx

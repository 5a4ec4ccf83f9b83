// SPDX-License-Identifier: BSD-3-Clause
// One peer over UCX: how frames and chunks leave, and chunks arrive.
#pragma once

#include "nnti/framed/connection.hpp"
#include "nnti/framed/pool.hpp"
#include "nnti/transports/ucx/worker.hpp"

#include <memory>

namespace nnti::ucx {

/// What all connections of a transport use. UCX may hold on to the slots until the worker is destroyed.
struct Network {
  framed::Pool<FrameSlot> frames;
  framed::Pool<ChunkSlot> chunks;
  std::unique_ptr<Worker> worker;
};

class UcxConnection final : public framed::Connection {
 public:
  UcxConnection(framed::Home &home, std::uint64_t token, Network &network)
      : Connection(home, token), network_(network) {}

  std::string explain() const override;
  std::vector<std::byte> hello() const override { return encode_hello({token_, network_.worker->address()}); }
  Status learn(std::span<const std::byte> hello) override;
  /// The side that connected knocks: it sends a first frame, upon which the other side connects to it and knocks as
  /// well. Then it opens, and gives the first credits: from now on, what either side sends leaves it at once.
  Status knock(const HostPort &address) override;
  Result<bool> reached() override;
  void on_frame(const framed::Frame &frame) override;

  // --- what UCX reports: it is only noted --------------------------------------------------------------------------------
  /// True: the payload is being received.
  bool on_chunk(const framed::ChunkHeader &header, const Payload &payload);
  void on_frame_sent(ucs_status_t status);
  void on_chunk_done(const ChunkSlot &slot, ucs_status_t status);

 private:
  Status link_up();
  void on_knock(const framed::FrameHeader &header);
  bool linked() const override { return link_ != nullptr; }
  bool send_frame(const framed::FrameHeader &header, std::span<const std::byte> body) override;
  bool has_left() const override { return sends_in_flight_ == 0; }
  void leave(bool at_once) override;
  std::size_t chunk_bytes() const override { return std::size_t{256} << 10; }
  bool takes_chunk() const override;
  Sent send_chunk(const framed::ChunkHeader &header, std::span<const std::byte> bytes) override;
  ChunkSlot &new_chunk(Work::Kind kind, std::uint64_t token, const framed::ChunkHeader &header);

  Network &network_;
  std::vector<std::byte> address_;  ///< of the peer's worker
  std::unique_ptr<Link> link_;
  bool peer_knocked_ = false;
  std::size_t chunks_leaving_ = 0;
};

}  // namespace nnti::ucx

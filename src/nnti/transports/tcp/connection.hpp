// SPDX-License-Identifier: BSD-3-Clause
// One peer over TCP: how frames and chunks leave, and arrive, over its stream.
#pragma once

#include "nnti/framed/connection.hpp"
#include "nnti/transports/tcp/streams.hpp"
#include "nnti/transports/tcp/wire.hpp"

#include <memory>
#include <optional>

namespace nnti::tcp {

/// Takes note of frames.
class Inbox {
 public:
  virtual void note(std::span<const std::byte> frame) = 0;

 protected:
  ~Inbox() = default;
};

class TcpConnection final : public framed::Connection, private LinkHost {
 public:
  TcpConnection(framed::Home &home, std::uint64_t token, Streams &streams, Inbox &inbox)
      : Connection(home, token), streams_(streams), inbox_(inbox) {}

  ~TcpConnection() override;
  std::string explain() const override;
  std::vector<std::byte> hello() const override { return encode_hello(Hello::Kind::kConnection, token_); }
  Status learn(std::span<const std::byte> hello) override;
  /// The side that connected asks for the stream.
  Status knock(const HostPort &address) override;
  Result<bool> reached() override;
  /// It was accepted, and has no stream yet.
  bool may_be_given_stream() const { return state_ == State::kOpen && link_ == nullptr; }
  void use_stream(nessie::Fd socket);

 private:
  bool linked() const override { return link_ != nullptr; }
  bool send_frame(const framed::FrameHeader &header, std::span<const std::byte> body) override;
  bool has_left() const override { return link_ == nullptr || !link_->stream().has_unsent(); }
  bool delivered() const override { return link_ == nullptr || link_->stream().delivered(); }
  void leave(bool at_once) override;
  void start_long(framed::FrameHeader header, const RemoteBuffer &remote, std::span<std::byte> local,
                  Completion &completion) override;
  bool takes_chunk() const override;
  Sent send_chunk(const framed::ChunkHeader &header, std::span<const std::byte> bytes) override;
  bool recall(std::span<std::byte> bytes, bool outgoing) override;
  void pump_transfers_later() override;

  // LinkHost
  void on_frame(std::span<const std::byte> frame) override;
  std::span<std::byte> on_chunk(std::span<const std::byte> header, std::size_t size_bytes) override;
  void on_chunk_end() override { transfers_.on_chunk_received(arriving_); }
  void on_chunk_sent(std::uint64_t id) override;
  void on_end(const Error &error) override { break_with(error); }
  bool pump_chunks() override { return transfers_.pump(); }
  using framed::Connection::on_frame;

  Streams &streams_;
  Inbox &inbox_;
  std::optional<bootstrap::Connector> connector_;  ///< while it asks for the stream
  std::unique_ptr<Link> link_;                     ///< stays until the end, closed or not
  framed::ChunkHeader arriving_;
};

}  // namespace nnti::tcp

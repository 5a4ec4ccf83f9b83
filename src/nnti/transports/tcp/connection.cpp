// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/tcp/connection.hpp"

#include <cstring>
#include <utility>

namespace nnti::tcp {
namespace {

constexpr std::size_t kChunksWaiting = 2;  // for the socket; a frame goes behind them

}  // namespace

TcpConnection::~TcpConnection() {
  if (connector_) home_.unwatch(connector_->fd());
}

std::string TcpConnection::explain() const {
  return "over the network with TCP; bulk data goes in chunks, which the side that owns the registered buffer checks";
}

// --- the beginning --------------------------------------------------------------------------------------------------------

Status TcpConnection::learn(std::span<const std::byte> blob) {
  auto hello = decode_hello(blob);
  if (!hello.ok()) return hello.error();
  if (hello->kind != Hello::Kind::kConnection)
    return Error{Code::kBadMessage, "the peer's greeting is that of a stream", nessie::Scope::kPeer};
  their_token_ = hello->token;
  return {};
}

Status TcpConnection::knock(const HostPort &address) {
  auto connector = home_.connect_again(address, encode_hello(Hello::Kind::kStream, their_token_));
  if (!connector.ok()) return connector.error();
  connector_.emplace(std::move(*connector));
  home_.watch(connector_->fd(), token_, true);
  return {};
}

Result<bool> TcpConnection::reached() {
  if (broken_) return lost_error(broken_->message, broken_->cause);
  auto outcome = connector_->advance();
  if (!outcome) {
    home_.watch(connector_->fd(), token_, connector_->wants_write());
    return false;
  }
  if (!outcome->ok()) return outcome->error();
  home_.unwatch((*outcome)->socket.fd());
  connector_.reset();
  use_stream((*outcome)->socket.take());
  return true;
}

void TcpConnection::use_stream(nessie::Fd socket) {
  link_ = std::make_unique<Link>(std::move(socket), streams_, static_cast<LinkHost &>(*this));
}

// --- sending --------------------------------------------------------------------------------------------------------------

bool TcpConnection::send_frame(const framed::FrameHeader &header, std::span<const std::byte> body) {
  link_->send_frame(std::as_bytes(std::span(&header, 1)), body);
  return true;
}

void TcpConnection::start_long(framed::FrameHeader header, const RemoteBuffer &remote, std::span<std::byte> local,
                               Completion &completion) {
  if (link_ != nullptr && header.type == framed::FrameType::kGet) link_->stream().expect_chunk();
  Connection::start_long(header, remote, local, completion);
}

bool TcpConnection::takes_chunk() const { return healthy() && link_->stream().unsent_chunks() < kChunksWaiting; }

/// A chunk's id is its operation, and whose that is.
framed::TransfersHost::Sent TcpConnection::send_chunk(const framed::ChunkHeader &header,
                                                      std::span<const std::byte> bytes) {
  const std::uint64_t id = header.operation << 1 | (header.type == framed::ChunkType::kPut ? 1 : 0);
  return link_->send_chunk(std::as_bytes(std::span(&header, 1)), bytes, id) ? Sent::kDone : Sent::kInFlight;
}

void TcpConnection::on_chunk_sent(std::uint64_t id) {
  framed::ChunkHeader header;
  header.operation = id >> 1;
  header.type = (id & 1) != 0 ? framed::ChunkType::kPut : framed::ChunkType::kGot;
  transfers_.on_chunk_sent(header);
}

void TcpConnection::pump_transfers_later() {
  if (link_ != nullptr) link_->flush_later();
}

// --- what arrives ---------------------------------------------------------------------------------------------------------

void TcpConnection::on_frame(std::span<const std::byte> frame) {
  framed::FrameHeader header;
  if (frame.size() >= sizeof header) std::memcpy(&header, frame.data(), sizeof header);
  if (header.token != token_) return break_protocol("the peer sends what cannot be read");
  inbox_.note(frame);
}

std::span<std::byte> TcpConnection::on_chunk(std::span<const std::byte> bytes, std::size_t size_bytes) {
  const auto header = framed::decode_chunk(bytes, size_bytes);
  if (!header) break_protocol("the peer sends what cannot be read");
  if (!header || !moves_data()) return {};
  arriving_ = *header;
  return transfers_.on_chunk(*header, size_bytes);
}

// --- the end --------------------------------------------------------------------------------------------------------------

/// Of a chunk that is half sent, the rest is copied; of one that is half received, the rest is thrown away.
bool TcpConnection::recall(std::span<std::byte> bytes, bool outgoing) {
  if (outgoing)
    link_->stream().copy_unsent(bytes);
  else
    link_->stream().discard_arriving();
  return true;
}

void TcpConnection::leave(bool) {
  if (link_ != nullptr) link_->close();
}

}  // namespace nnti::tcp

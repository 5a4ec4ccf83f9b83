// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/ucx/connection.hpp"

#include <fmt/core.h>

#include <cstring>

namespace nnti::ucx {

namespace {

constexpr std::size_t kChunksInFlight = 4;  // to one peer

}  // namespace

std::string UcxConnection::explain() const {
  return fmt::format(
      "over the network with UCX ({}); bulk data goes in chunks, which the side that owns the registered buffer checks",
      link_ ? link_->devices() : "closed");
}

// --- the beginning --------------------------------------------------------------------------------------------------------

Status UcxConnection::learn(std::span<const std::byte> blob) {
  auto hello = decode_hello(blob);
  if (!hello.ok()) return hello.error();
  their_token_ = hello->token;
  address_ = std::move(hello->address);
  return {};
}

Status UcxConnection::link_up() {
  auto link = network_.worker->connect(address_, token_);
  if (!link.ok()) return link.error();
  link_ = std::move(*link);
  framed::FrameHeader header{.type = framed::FrameType::kCredit};
  post(header, {});
  return {};
}

Status UcxConnection::knock(const HostPort &) { return link_up(); }

void UcxConnection::on_knock(const framed::FrameHeader &header) {
  if (header.type != framed::FrameType::kCredit || header.credits != 0 || header.sequence != 0 ||
      !frames_.count(header))
    return break_protocol("the peer speaks before it is asked");
  peer_knocked_ = true;
  if (state_ == State::kConnecting) return home_.ask_again();
  if (auto status = link_up(); !status.ok()) break_with(status.error());
}

Result<bool> UcxConnection::reached() {
  if (broken_) return lost_error(broken_->message, broken_->cause);
  if (auto page = socket_->receive(); !page.ok()) return page.error();
  return peer_knocked_ && sends_in_flight_ == 0;
}

void UcxConnection::on_frame(const framed::Frame &frame) {
  if (peer_knocked_) return Connection::on_frame(frame);
  if (!reapable() && !breached()) on_knock(frame.header);
}

// --- sending --------------------------------------------------------------------------------------------------------------

bool UcxConnection::send_frame(const framed::FrameHeader &header, std::span<const std::byte> body) {
  FrameSlot &slot = network_.frames.take();
  std::memcpy(slot.bytes.data(), &header, sizeof header);
  if (!body.empty()) std::memcpy(slot.bytes.data() + sizeof header, body.data(), body.size());
  slot.kind = Work::Kind::kFrame;
  slot.token = token_;
  const auto status = link_->send_frame(std::span(slot.bytes).first(sizeof header + body.size()), slot);
  if (status == UCS_INPROGRESS) ++sends_in_flight_;
  if (status != UCS_INPROGRESS) network_.frames.give_back(slot);
  if (status == UCS_OK || status == UCS_INPROGRESS) return true;
  break_with(ucx_error("cannot send to the peer", status));
  return false;
}

void UcxConnection::on_frame_sent(ucs_status_t status) {
  on_sent();
  if (state_ == State::kConnecting) home_.ask_again();
  if (status != UCS_OK) break_with(ucx_error("the peer cannot be reached any more", status));
}

ChunkSlot &UcxConnection::new_chunk(Work::Kind kind, std::uint64_t token, const framed::ChunkHeader &header) {
  ChunkSlot &slot = network_.chunks.take();
  slot.kind = kind;
  slot.token = token_;
  slot.chunk = {token, header};
  return slot;
}

bool UcxConnection::takes_chunk() const { return healthy() && chunks_leaving_ < kChunksInFlight; }

framed::TransfersHost::Sent UcxConnection::send_chunk(const framed::ChunkHeader &header,
                                                      std::span<const std::byte> bytes) {
  ChunkSlot &slot = new_chunk(Work::Kind::kChunkSent, their_token_, header);
  const auto status = link_->send_chunk(bytes, slot);
  if (status == UCS_INPROGRESS) {
    ++chunks_leaving_;
    return Sent::kInFlight;
  }
  network_.chunks.give_back(slot);
  if (status == UCS_OK) return Sent::kDone;
  break_with(ucx_error("cannot send to the peer", status));
  return Sent::kFailed;
}

// --- chunks that arrive ---------------------------------------------------------------------------------------------------

bool UcxConnection::on_chunk(const framed::ChunkHeader &header, const Payload &payload) {
  const auto place = transfers_.on_chunk(header, payload.size_bytes);
  if (place.empty()) return false;
  if (payload.here) {
    std::memcpy(place.data(), payload.data, place.size());
    transfers_.on_chunk_received(header);
    return false;
  }
  ChunkSlot &slot = new_chunk(Work::Kind::kChunkReceived, token_, header);
  const auto status = network_.worker->receive(payload, place, slot);
  if (status == UCS_INPROGRESS) return true;
  on_chunk_done(slot, status);
  network_.chunks.give_back(slot);
  return true;
}

void UcxConnection::on_chunk_done(const ChunkSlot &slot, ucs_status_t status) {
  const bool failed = status != UCS_OK;
  const bool sent = slot.kind == Work::Kind::kChunkSent;
  if (failed) break_with(ucx_error("a transfer with the peer failed", status));
  if (!sent) return transfers_.on_chunk_received(slot.chunk.header, failed);
  --chunks_leaving_;
  transfers_.on_chunk_sent(slot.chunk.header, failed);
}

// --- the end --------------------------------------------------------------------------------------------------------------

void UcxConnection::leave(bool) { link_.reset(); }

}  // namespace nnti::ucx

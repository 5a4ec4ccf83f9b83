// SPDX-License-Identifier: BSD-3-Clause
// A connection's lane, where libfabric has nothing but TCP either: frames and bulk go over it.
#include "nnti/transports/ofi/transport.hpp"

#include <cstring>
#include <utility>

namespace nnti::ofi {

void OfiConnection::use_lane(nessie::Fd socket) {
  lane_ = std::make_unique<stream::LaneConnection>(std::move(socket), transport_.peers().lanes(),
                                                   static_cast<stream::LaneHost &>(*this));
}

// --- gets and puts ------------------------------------------------------------------------------------------------------

void OfiConnection::start_over_lane(FrameHeader header, const RemoteBuffer &remote, std::span<std::byte> local,
                                    Completion &completion) {
  if (header.type == FrameType::kPut)
    return lane_->transfers().begin_put(header.operation, remote, header.offset, local, completion);
  header.exposed = kOverLane;
  lane_->transfers().begin_get(header.operation, local, completion);
  send_or_keep(header, {}, false);
}

void OfiConnection::serve_over_lane(const Frame &frame, const Memory &memory) {
  const auto &request = frame.header;
  const bool is_get = lane_ && request.type == FrameType::kGet;
  if (!is_get || !lane_->transfers().serve_get(
                     request.operation, {Code::kOk, memory.bytes().subspan(request.offset, request.length), &memory}))
    break_with({Code::kBadMessage, "the peer asks for what it may not", nessie::Scope::kPeer});
}

// --- what the lane reports: it is only noted ----------------------------------------------------------------------------

void OfiConnection::on_frame(std::span<const std::byte> frame) {
  if (!transport_.note_frame(*this, frame))
    break_with({Code::kBadMessage, "the peer sends what cannot be read", nessie::Scope::kPeer});
}

stream::TransfersHost::Target OfiConnection::target_of_put(std::uint64_t key, std::uint64_t offset,
                                                           std::uint64_t length) {
  return transport_.target_of_put(key, offset, length);
}

void OfiConnection::answer_transfer(std::uint64_t operation, Code result) {
  FrameHeader header;
  header.type = FrameType::kDone;
  header.operation = operation;
  header.result = static_cast<std::uint16_t>(result);
  if (active() && !breaking()) answer(header);
}

// --- all lanes of the transport -----------------------------------------------------------------------------------------

bool OfiTransport::note_frame(const OfiConnection &connection, std::span<const std::byte> bytes) {
  const auto frame = decode_frame(bytes);
  if (!frame || frame->header.token != connection.token()) return false;
  Slot *slot = lane_slots_.take();
  slot->kind = Work::Kind::kFromLane;
  std::memcpy(slot->data, bytes.data(), bytes.size());
  arrived_.push_back({slot, bytes.size()});
  return true;
}

stream::TransfersHost::Target OfiTransport::target_of_put(std::uint64_t key, std::uint64_t offset,
                                                          std::uint64_t length) const {
  FrameHeader request;
  request.type = FrameType::kPut;
  request.offset = offset;
  request.length = length;
  const auto found = memories_.find(key);
  if (found == memories_.end()) return {Code::kRefused, {}, nullptr};
  const Memory *memory = found->second;
  if (const Code code = check(memory, request); code != Code::kOk) return {code, {}, nullptr};
  return {Code::kOk, memory->bytes().subspan(offset, length), memory};
}

}  // namespace nnti::ofi

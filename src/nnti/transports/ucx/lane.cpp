// SPDX-License-Identifier: BSD-3-Clause
// A connection's lane, where UCX has nothing but TCP either: frames and bulk go over it.
#include "nnti/transports/ucx/transport.hpp"

#include <utility>

namespace nnti::ucx {

void UcxConnection::use_lane(nessie::Fd socket) {
  lane_ = std::make_unique<stream::LaneConnection>(std::move(socket), transport_.peers().lanes(),
                                                   static_cast<stream::LaneHost &>(*this));
  peer_knocked_ = true;
}

void UcxConnection::on_frame(std::span<const std::byte> frame) {
  if (!transport_.note_frame(*this, frame))
    break_with({Code::kBadMessage, "the peer sends what cannot be read", nessie::Scope::kPeer});
}

stream::TransfersHost::Target UcxConnection::target_of_put(std::uint64_t key, std::uint64_t offset,
                                                           std::uint64_t length) {
  const Memory *memory = memory_with(key);
  const Code code = memory == nullptr ? Code::kRefused : memory->check(Rights::kRemoteWrite, offset, length);
  if (code != Code::kOk) return {code, {}, nullptr};
  return {Code::kOk, memory->region().bytes.subspan(offset, length), memory};
}

void UcxConnection::answer_transfer(std::uint64_t operation, Code result) {
  if (state_ == State::kOpen && !broken_) answer_done(operation, result);
}

bool UcxTransport::note_frame(const UcxConnection &connection, std::span<const std::byte> bytes) {
  const auto frame = decode_frame(bytes);
  if (!frame || frame->header.token != connection.token()) return false;
  on_frame(bytes);
  return true;
}

}  // namespace nnti::ucx

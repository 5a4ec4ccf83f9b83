// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/endpoint/probe.hpp"

#include "nnti/transport/registration_check.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

namespace nnti {
namespace {

struct Borrow {
  std::uint64_t id = 0;
  std::uint32_t memory = 0, zero = 0;
};

struct Lent {
  std::uint64_t id = 0, key = 0, address = 0, size_bytes = 0, location = 0;
  std::uint32_t slot = 0, rights = 0, code = 0, zero = 0;
};

static_assert(sizeof(Borrow) <= kMinMessageBytes && sizeof(Lent) <= kMinMessageBytes);

std::uint64_t id_of(std::span<const std::byte> message) {
  std::uint64_t id = 0;
  if (message.size() >= sizeof id) std::memcpy(&id, message.data(), sizeof id);
  return id;
}

Error refused_probe(Code code) {
  switch (code) {
    case Code::kBusy: return {code, "too many others are measuring this peer; try again later"};
    case Code::kNoMemory: return {code, "the peer has no memory left for a test"};
    case Code::kUnsupported: return {code, "the peer's transport cannot register memory of this kind"};
    default: return {code, "the peer lends no memory for a test"};
  }
}

}  // namespace

// --- asking -----------------------------------------------------------------------------------------------------------

std::vector<std::byte> PendingProbes::remember(const Pending &pending, std::size_t request_bytes) {
  std::vector<std::byte> request(request_bytes);
  const auto id = asked_.add(pending);
  std::memcpy(request.data(), &id, sizeof id);
  return request;
}

std::vector<std::byte> PendingProbes::ping(PeerId peer, std::size_t size_bytes, Completion &completion) {
  size_bytes = std::max(size_bytes, kMinPingBytes);
  return remember({peer, size_bytes, nullptr, &completion}, size_bytes);
}

std::vector<std::byte> PendingProbes::borrow(PeerId peer, ProbeMemory memory, RemoteBuffer &buffer,
                                             Completion &completion) {
  auto request = remember({peer, 0, &buffer, &completion}, sizeof(Borrow));
  return bytes_of(Borrow{id_of(request), static_cast<std::uint32_t>(memory), 0});
}

std::optional<PendingProbes::Pending> PendingProbes::take(PeerId peer, std::uint64_t id, bool is_echo) {
  const auto *found = asked_.find(peer, id);
  if (found == nullptr || (found->buffer == nullptr) != is_echo) return std::nullopt;
  return asked_.take(peer, id);
}

bool PendingProbes::on_pong(PeerId peer, std::span<const std::byte> message) {
  if (message.size() < kMinPingBytes) return false;
  auto pending = take(peer, id_of(message), true);
  if (!pending) return false;
  const bool whole = message.size() == pending->size_bytes;
  pending->completion->on_complete(
      whole ? Status() : Status(Error{Code::kBadMessage, "the echo has another size than the message"}));
  return whole;
}

bool PendingProbes::on_lent(PeerId peer, std::span<const std::byte> message) {
  Lent lent;
  if (message.size() != sizeof lent) return false;
  std::memcpy(&lent, message.data(), sizeof lent);
  auto pending = take(peer, lent.id, false);
  if (!pending) return false;
  const auto code = received_code(lent.code);
  if (code == Code::kOk)
    *pending->buffer = {lent.key,      lent.address, lent.size_bytes,
                        lent.location, lent.slot,    static_cast<Rights>(lent.rights)};
  pending->completion->on_complete(code == Code::kOk ? Status() : refused_probe(code));
  return true;
}

// --- answering --------------------------------------------------------------------------------------------------------

std::optional<BorrowRequest> decode_borrow(std::span<const std::byte> message) {
  Borrow borrow;
  if (message.size() != sizeof borrow) return std::nullopt;
  std::memcpy(&borrow, message.data(), sizeof borrow);
  if (borrow.memory > static_cast<std::uint32_t>(ProbeMemory::kOwn)) return std::nullopt;
  return BorrowRequest{borrow.id, static_cast<ProbeMemory>(borrow.memory)};
}

std::vector<std::byte> encode_lent(std::uint64_t id, const Result<RemoteBuffer> &lent) {
  Lent answer;
  answer.id = id;
  answer.code = static_cast<std::uint32_t>(lent.code());
  if (!lent.ok()) return bytes_of(answer);
  answer.key = lent->key;
  answer.address = lent->address;
  answer.size_bytes = lent->size_bytes;
  answer.location = lent->location;
  answer.slot = lent->slot;
  answer.rights = static_cast<std::uint32_t>(lent->rights);
  return bytes_of(answer);
}

}  // namespace nnti

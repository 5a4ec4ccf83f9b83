// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/endpoint/eager.hpp"

#include <nessie/copy.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

namespace nnti {
namespace {

/// As it travels: one slot of a mailbox.
struct WireNotice {
  std::uint64_t key = 0, address = 0, arena_bytes = 0, location = 0, number = 0;
  std::uint32_t slot = 0, rights = 0, size_bytes = 0, block = 0;
};
static_assert(sizeof(WireNotice) == EagerBlocks::kNoticeBytes && sizeof(WireNotice) <= kMinMessageBytes);

/// A block: the number of its message, 0 while it is written, and the message.
constexpr std::size_t kHeaderBytes = sizeof(std::uint64_t);
constexpr std::size_t kBlockBytes = kMaxEagerBytes + nessie::kLineBytes;  // whole lines
constexpr std::size_t kArenaBytes = EagerBlocks::kBlocksPerArena * kBlockBytes;

/// In its arena.
constexpr std::size_t offset_of(std::uint32_t block) { return block % EagerBlocks::kBlocksPerArena * kBlockBytes; }

std::atomic_ref<std::uint64_t> number_of(std::byte *block) {
  return std::atomic_ref(*reinterpret_cast<std::uint64_t *>(block));
}

}  // namespace

Result<std::uint64_t> eager_max_of(const nessie::Config &config) {
  auto most = config.get_size("nnti.eager_max", kMaxEagerBytes);
  if (most.ok() && *most > kMaxEagerBytes)
    return config.bad_value("nnti.eager_max",
                            "at most 8192: larger messages are left at their sender until there is room");
  return most;
}

// --- the sender -------------------------------------------------------------------------------------------------------

void EagerBlocks::configure(std::size_t limit_bytes) {
  max_arenas_ = std::max<std::size_t>(limit_bytes / kArenaBytes, 1);
}

bool EagerBlocks::grow(Endpoint &endpoint) {
  if (arenas_.size() == max_arenas_) return false;
  auto arena = endpoint.allocate(kArenaBytes, Rights::kRemoteRead);
  if (!arena.ok()) return false;
  arena->outlive_endpoint();
  arenas_.push_back({std::move(*arena), {}, {}});
  const auto first = static_cast<std::uint32_t>(blocks_.size());
  blocks_.resize(blocks_.size() + kBlocksPerArena);
  for (auto block = static_cast<std::uint32_t>(blocks_.size()); block > first; --block) free_.push_back(block - 1);
  return true;
}

std::uint32_t EagerBlocks::fill(Endpoint &endpoint, PeerId peer, std::span<const std::byte> message) {
  if (free_.empty() && !grow(endpoint)) return kNone;
  const auto block = free_.front();
  free_.pop_front();
  const auto number = next_number_++;
  number_of(place(block)).store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  std::memcpy(place(block) + kHeaderBytes, message.data(), message.size());
  number_of(place(block)).store(number, std::memory_order_release);
  blocks_[block] = {peer, static_cast<std::uint32_t>(message.size()), number};
  return block;
}

std::byte *EagerBlocks::place(std::uint32_t block) const {
  return arenas_[block / kBlocksPerArena].memory.bytes().data() + offset_of(block);
}

std::optional<std::array<std::byte, EagerBlocks::kNoticeBytes>> EagerBlocks::notice(std::uint32_t block) {
  auto &arena = arenas_[block / kBlocksPerArena];
  const auto peer = blocks_[block].peer;
  if (arena.described_to != peer) {
    auto remote = arena.memory.describe_for(peer);
    if (!remote.ok()) return std::nullopt;
    arena.described_to = peer;
    arena.remote = *remote;
  }
  const auto &remote = arena.remote;
  const WireNotice wire{remote.key,
                        remote.address,
                        remote.size_bytes,
                        remote.location,
                        blocks_[block].number,
                        remote.slot,
                        static_cast<std::uint32_t>(remote.rights),
                        blocks_[block].size_bytes,
                        block};
  return std::bit_cast<std::array<std::byte, kNoticeBytes>>(wire);
}

bool EagerBlocks::on_done(PeerId peer, std::span<const std::byte> message) {
  std::uint32_t block = 0;
  if (message.size() != sizeof block) return false;
  std::memcpy(&block, message.data(), sizeof block);
  if (block >= blocks_.size() || blocks_[block].peer != peer) return false;
  take_back(block);
  return true;
}

void EagerBlocks::take_back(std::uint32_t block) {
  blocks_[block] = {};
  free_.push_back(block);
}

void EagerBlocks::forget(PeerId peer) {
  for (std::uint32_t block = 0; block < blocks_.size(); ++block)
    if (blocks_[block].peer == peer) take_back(block);
}

// --- notices ----------------------------------------------------------------------------------------------------------

std::optional<EagerNotice> decode_eager_notice(std::span<const std::byte> message) {
  WireNotice wire;
  if (message.size() != sizeof wire) return std::nullopt;
  std::memcpy(&wire, message.data(), sizeof wire);
  if (wire.size_bytes > kMaxEagerBytes || wire.arena_bytes != kArenaBytes) return std::nullopt;
  return EagerNotice{
      {wire.key, wire.address, wire.arena_bytes, wire.location, wire.slot, static_cast<Rights>(wire.rights)},
      offset_of(wire.block),
      wire.number,
      wire.size_bytes,
      wire.block};
}

Result<std::span<const std::byte>> fetch_block(Connection &connection, const EagerNotice &notice,
                                               std::span<std::byte, kMaxEagerBytes> copy) {
  auto view = connection.view(notice.arena, notice.offset, kHeaderBytes + notice.size_bytes);
  if (!view.ok()) return view.error();
  auto *block = const_cast<std::byte *>(view->bytes().data());  // atomic_ref reads it only
  const bool there = number_of(block).load(std::memory_order_acquire) == notice.number;
  std::memcpy(copy.data(), block + kHeaderBytes, notice.size_bytes);
  std::atomic_thread_fence(std::memory_order_acquire);
  if (!there || number_of(block).load(std::memory_order_relaxed) != notice.number)
    return Error{Code::kNotFound, "the peer left, and its memory holds another message by now", nessie::Scope::kPeer};
  return std::span<const std::byte>(copy.first(notice.size_bytes));
}

std::array<std::byte, 4> encode_eager_done(std::uint32_t block) {
  std::array<std::byte, 4> message;
  std::memcpy(message.data(), &block, sizeof block);
  return message;
}

}  // namespace nnti

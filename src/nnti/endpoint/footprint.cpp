// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/endpoint/footprint.hpp"

#include "nnti/endpoint/impl.hpp"
#include "nnti/transports/shm/connection.hpp"
#include "nnti/transports/shm/seats.hpp"

namespace nnti::shm {
namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr double kVectorGrowth = 1.5;  ///< of a vector that doubles when it is full: what it holds, on average

constexpr std::size_t in_pages(std::size_t size_bytes) {
  return (size_bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

/// What malloc takes for an object: its own word, in steps of 16 bytes.
constexpr std::size_t on_heap(std::size_t size_bytes) { return (size_bytes + 8 + 15) / 16 * 16; }

}  // namespace

Footprint footprint_of_peer(ChannelKind channel, std::uint64_t slots) {
  Footprint footprint;
  constexpr std::size_t kPointers =
      2 * sizeof(void *);  // the transport's to the connection, the endpoint's to the peer
  footprint.connected = static_cast<double>(on_heap(sizeof(ShmConnection)) + on_heap(sizeof(Endpoint::Impl::Peer))) +
                        kVectorGrowth * (kPointers + Seats::kBytesOfOne);
  // A mailbox of ours, and one of the peer's; and its table's first page, in which our line is.
  const std::size_t shared = channel == ChannelKind::kMailbox ? 2 * in_pages(ring_bytes(slots)) : 0;
  footprint.used = footprint.connected + static_cast<double>(shared + kPageBytes) / 2 + sizeof(ConnectionLine);
  return footprint;
}

std::size_t footprint_of_queue(std::uint64_t entries) { return in_pages(queue_bytes(entries)); }

}  // namespace nnti::shm

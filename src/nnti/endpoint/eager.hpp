// SPDX-License-Identifier: BSD-3-Clause
// Messages that do not fit into a mailbox: eager through registered buffers, after the uGNI paper, section 3.
//
// Design notes. The sender copies the message into a block of memory that it has allocated for sharing, and sends a
// notice that names the block; the receiver reads it where it is mapped, delivers the message, and acknowledges, so
// that the sender has its block back. Blocks are an endpoint's, not a peer's: their memory grows with the messages
// under way. They are not unregistered at the endpoint's end: what was sent before it ended can still be fetched from
// the memory that the peer maps. A block begins with the number of its message: who fetches it late, from an endpoint
// that has given the connection up and uses the block again, sees that. To peers that do not map our memory, such
// messages go in fragments.
#pragma once

#include "nnti/transport/transport.hpp"

#include <array>
#include <deque>
#include <optional>
#include <vector>

namespace nnti {

inline constexpr std::size_t kMaxEagerBytes = 8192;

/// nnti.eager_max: the engine leaves larger messages to rendezvous. kInvalidArgument: it cannot be read, or is more
/// than can be pushed.
Result<std::uint64_t> eager_max_of(const nessie::Config &config);

/// A sender's blocks.
class EagerBlocks {
 public:
  static constexpr std::uint32_t kNone = ~0u;
  static constexpr std::size_t kBlocksPerArena = 32;

  /// At most `limit_bytes` of blocks, and one arena at least.
  void configure(std::size_t limit_bytes);
  /// Copies `message` into a block that `peer` will fetch. kNone: all are under way, or there is no memory.
  std::uint32_t fill(Endpoint &endpoint, PeerId peer, std::span<const std::byte> message);
  static constexpr std::size_t kNoticeBytes = 56;
  /// The notice that names the block to its peer; none: the block cannot be described to it.
  std::optional<std::array<std::byte, kNoticeBytes>> notice(std::uint32_t block);
  /// What a peer says of a block that it has fetched. False: it makes no sense.
  bool on_done(PeerId peer, std::span<const std::byte> message);
  void take_back(std::uint32_t block);
  /// All blocks under way to `peer` are free again, to be used after all others.
  void forget(PeerId peer);

 private:
  struct Block {
    PeerId peer;  ///< under way to it; 0: free
    std::uint32_t size_bytes = 0;
    std::uint64_t number = 0;
  };
  struct Arena {
    RegisteredBuffer memory;
    PeerId described_to;  ///< last, as `remote`
    RemoteBuffer remote;
  };
  std::byte *place(std::uint32_t block) const;
  bool grow(Endpoint &endpoint);

  std::size_t max_arenas_ = 1;
  std::vector<Arena> arenas_;
  std::vector<Block> blocks_;
  std::deque<std::uint32_t> free_;
  std::uint64_t next_number_ = 1;
};

/// What a notice says.
struct EagerNotice {
  RemoteBuffer arena;
  std::uint64_t offset = 0;  ///< of the block
  std::uint64_t number = 0;
  std::uint32_t size_bytes = 0, block = 0;
};
std::optional<EagerNotice> decode_eager_notice(std::span<const std::byte> message);
/// Copies the message out of the block that `connection`'s peer lent us; its bytes in `copy`. kNotFound: the block
/// holds another message by now; otherwise as Connection::view.
Result<std::span<const std::byte>> fetch_block(Connection &connection, const EagerNotice &notice,
                                               std::span<std::byte, kMaxEagerBytes> copy);
std::array<std::byte, 4> encode_eager_done(std::uint32_t block);

}  // namespace nnti

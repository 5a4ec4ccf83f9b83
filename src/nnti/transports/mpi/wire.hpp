// SPDX-License-Identifier: BSD-3-Clause
// What two mpi transports say to each other besides framed/wire.hpp; README.md has it byte by byte. Host byte order:
// MPI moves bytes, and the magic number of the greeting tells when the other side's order is not ours.
#pragma once

#include "nnti/framed/wire.hpp"

#include <base/credential.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

namespace nnti::mpi {

inline constexpr std::uint32_t kMagic = 0x4e4d5049;
inline constexpr std::uint32_t kVersion = 2;
inline constexpr std::size_t kMaxMessageBytes = framed::kMaxInlineBytes;
inline constexpr std::uint32_t kCredits = 128;    ///< frames that a peer may have on the way to us
inline constexpr std::size_t kMaxTransfers = 32;  ///< larger gets and puts that one side has under way with a peer
inline constexpr std::uint64_t kChunkBytes = 8u << 20;  ///< of bulk data, in one message of MPI

// Tags of our communicator: all within what every MPI allows (32767).
inline constexpr int kDoorTag = 0;                             ///< greetings, to whichever endpoint of a process
inline constexpr int kFirstPort = 1, kPorts = 4095;            ///< frames, to one endpoint
inline constexpr int kFirstBulkTag = 4096, kBulkTags = 28672;  ///< bulk data, one transfer each

using framed::Frame;
using framed::FrameHeader;
using framed::FrameType;

// Of the mpi transport's own. In kGet (of more than a frame holds) and kClear, `result` is the tag of the bulk data; in
// kDone and kStopped, `length` is the number of chunks that were sent.
inline constexpr auto kClear = static_cast<FrameType>(16), kStopped = static_cast<FrameType>(17);
inline constexpr auto kChallenge = static_cast<FrameType>(32), kProof = static_cast<FrameType>(33),
                      kWelcome = static_cast<FrameType>(34), kRefusal = static_cast<FrameType>(35);
inline constexpr std::size_t kMaxFrameBytes = sizeof(FrameHeader) + kMaxMessageBytes;

/// Empty if `bytes` are no whole frame.
inline std::optional<Frame> decode_frame(std::span<const std::byte> bytes) {
  auto frame = framed::decode_frame(bytes);
  if (!frame || bytes.size() > kMaxFrameBytes) return std::nullopt;
  const auto &header = frame->header;
  const bool own =
      header.type == kClear || header.type == kStopped || (header.type >= kChallenge && header.type <= kRefusal);
  if (header.type >= FrameType::kFirstOwn && !own) return std::nullopt;
  const bool tagged = header.type == kClear || (header.type == FrameType::kGet && header.length > kMaxMessageBytes);
  if (tagged && (header.result < kFirstBulkTag || header.result >= kFirstBulkTag + kBulkTags)) return std::nullopt;
  return frame;
}

/// The first word of a connecting side, to a process's door.
struct Hello {
  std::uint32_t magic = kMagic;
  std::uint32_t version = kVersion;
  std::int32_t port = 0;        ///< of the endpoint that is meant
  std::int32_t reply_port = 0;  ///< where answers go
  std::uint64_t token = 0;      ///< the connecting side's name for the connection
  nessie::Nonce nonce{};
};
static_assert(sizeof(Hello) == 40);

/// Whether an answer to `hello` could reach anybody.
inline bool makes_sense(const Hello &hello) {
  return hello.magic == kMagic && hello.token != 0 && hello.reply_port >= kFirstPort &&
         hello.reply_port < kFirstPort + kPorts;
}

/// A kChallenge's body.
struct Challenge {
  nessie::Nonce nonce{};
  nessie::Proof proof{};
};
static_assert(sizeof(Challenge) == 48);

}  // namespace nnti::mpi

// SPDX-License-Identifier: BSD-3-Clause
// What two mpi transports say to each other; README.md has it byte by byte. Host byte order: MPI moves bytes, and the
// magic number of the greeting tells when the other side's order is not ours.
#pragma once

#include "nnti/transport/transport.hpp"

#include <base/credential.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

namespace nnti::mpi {

inline constexpr std::uint32_t kMagic = 0x4e4d5049;
inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::size_t kMaxMessageBytes = 4096;
inline constexpr std::uint32_t kCredits = 128;    ///< frames that a peer may have on the way to us
inline constexpr std::size_t kMaxTransfers = 32;  ///< larger gets and puts that one side has under way with a peer
inline constexpr std::uint64_t kChunkBytes = 8u << 20;  ///< of bulk data, in one message of MPI

// Tags of our communicator: all within what every MPI allows (32767).
inline constexpr int kDoorTag = 0;                             ///< greetings, to whichever endpoint of a process
inline constexpr int kFirstPort = 1, kPorts = 4095;            ///< frames, to one endpoint
inline constexpr int kFirstBulkTag = 4096, kBulkTags = 28672;  ///< bulk data, one transfer each

enum class FrameType : std::uint8_t {
  kMessage = 1,
  kCredit,
  kGet,
  kPut,
  kClear,
  kDone,
  kStopped,
  kBye,
  kChallenge,
  kProof,
  kWelcome,
  kRefusal
};

struct FrameHeader {
  std::uint64_t token = 0;     ///< the receiving side's name for the connection
  std::uint32_t sequence = 0;  ///< of the connection's frames in this direction
  std::uint16_t credits = 0;
  FrameType type = FrameType::kMessage;
  MessageKind kind = MessageKind::kUser;
  std::uint64_t operation = 0;  ///< the asking side's name for it; kChallenge: the accepting side's token
  std::uint64_t key = 0;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;  ///< kDone, kStopped: chunks that were sent
  std::int32_t tag = 0;      ///< of the bulk data; 0: it travels in the frame
  std::uint32_t result = 0;  ///< a nessie code
};
static_assert(sizeof(FrameHeader) == 56);
inline constexpr std::size_t kMaxFrameBytes = sizeof(FrameHeader) + kMaxMessageBytes;

struct Frame {
  FrameHeader header;
  std::span<const std::byte> body;
};

/// Whether a frame of this type uses up one of the credits that its receiver gave.
inline bool costs_credit(FrameType type) {
  return type >= FrameType::kMessage && type <= FrameType::kStopped && type != FrameType::kCredit;
}

/// Empty if `bytes` are no whole frame.
inline std::optional<Frame> decode_frame(std::span<const std::byte> bytes) {
  Frame frame;
  if (bytes.size() < sizeof frame.header || bytes.size() > kMaxFrameBytes) return std::nullopt;
  std::memcpy(&frame.header, bytes.data(), sizeof frame.header);
  frame.body = bytes.subspan(sizeof frame.header);
  const auto &header = frame.header;
  if (header.type < FrameType::kMessage || header.type > FrameType::kRefusal) return std::nullopt;
  if (static_cast<std::uint8_t>(header.kind) > kMaxMessageKind) return std::nullopt;
  const bool in_range = header.tag >= kFirstBulkTag && header.tag < kFirstBulkTag + kBulkTags;
  if (header.tag != 0 && !in_range) return std::nullopt;
  const bool large = header.length > kMaxMessageBytes;
  if (header.type == FrameType::kGet && large != (header.tag != 0)) return std::nullopt;
  if (header.type == FrameType::kPut && !large && header.length != frame.body.size()) return std::nullopt;
  if (header.type == FrameType::kClear && header.tag == 0) return std::nullopt;
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

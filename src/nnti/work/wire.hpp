// SPDX-License-Identifier: BSD-3-Clause
// What two contexts say to each other over an endpoint's messages. Each message is one Control, in the sender's byte
// order (both sides of an endpoint are alike), followed by its payload.
//
//   kind       operation    buffer           offset         length             result   payload
//   kHello     secret or 0  sender's process -              -                  -        its URL list
//   kSend      sender's id  destination or 0 -              the message's      -        the message
//   kSendLarge sender's id  destination or 0 bytes to read  the message's      -        RemoteBuffers to read them from
//   kWriteTo   sender's id  receiver's id    range of the message to be written -       RemoteBuffers to write it to
//   kWritten   -            receiver's id    -              -                  how      -
//   kClear     sender's id  -                -              -                  -        -
//   kResend    sender's id  destination or 0 -              the message's      -        the message
//   kWithdraw  sender's id  destination or 0 -              -                  -        -
//   kSent      sender's id  -                -              -                  how      -
//   kDescribe  -            asked for        first segment  -                  -        -
//   kDescribed purposes     asked for        first segment  segments in all    how      RemoteBuffer for each
//   kForget    -            described before -              -                  -        -
//   kAccessed  purpose      accessed         accessed range -                  -        -
//
// A message whose destination is full waits at the receiver: its bytes too if there is room for them, otherwise only
// its id, and the receiver asks for it again (kClear) when its turn has come. kSent ends every send. kWithdraw asks
// for a message that waits to be dropped (kSent: cancelled). kAccessed tells the owner of a buffer registered with
// events what was done to it; kForget, that a description given before has changed.
//
// A large message (rendezvous) stays with its sender until its receiver has room. Then the receiver reads as much from
// its front as the sender said, and has the sender write the rest, piece by piece: kWriteTo names up to kMaxPieces
// pieces of memory, in order, whose sizes sum up to the range; kWritten says that the range is there, or why not; then
// the next kWriteTo follows, or, after the last, kSent. Nothing to read: all is written. Nothing to write: neither
// kWriteTo nor kWritten is said. Both go on at once.
#pragma once

#include <nnti/nnti.hpp>

#include <cstring>
#include <optional>
#include <span>
#include <vector>

namespace nnti::wire {

enum class Kind : std::uint16_t {
  kHello = 1,
  kSend,
  kSendLarge,
  kClear,
  kResend,
  kWithdraw,
  kSent,
  kDescribe,
  kDescribed,
  kForget,
  kAccessed,
  kWriteTo,
  kWritten
};

/// Of memory that one message names.
inline constexpr std::size_t kMaxPieces = 64;

struct Control {
  static constexpr std::uint32_t kMagic = 0x4e4e5449;  // "NNTI"
  static constexpr std::uint16_t kVersion = 3;

  std::uint32_t magic = kMagic;
  std::uint16_t version = kVersion;
  Kind kind = Kind::kHello;
  std::uint64_t operation = 0;
  std::uint64_t buffer = 0;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::uint64_t result = 0;
};
static_assert(std::is_trivially_copyable_v<Control> && sizeof(Control) == 48);
static_assert(std::is_trivially_copyable_v<RemoteBuffer> && sizeof(RemoteBuffer) == 40);

/// The Control at the head of `message`, or nothing if it is none of ours or contradicts the message's size.
inline std::optional<Control> parse(std::span<const std::byte> message) {
  Control control;
  if (message.size() < sizeof control) return std::nullopt;
  std::memcpy(&control, message.data(), sizeof control);
  const bool known = control.kind >= Kind::kHello && control.kind <= Kind::kWritten;
  if (control.magic != Control::kMagic || control.version != Control::kVersion || !known) return std::nullopt;
  const std::size_t payload = message.size() - sizeof control;
  const bool pieces = payload % sizeof(RemoteBuffer) == 0 && payload / sizeof(RemoteBuffer) <= kMaxPieces;
  const bool inside = control.offset <= control.length;
  switch (control.kind) {
    case Kind::kSend:
    case Kind::kResend: return control.length == payload ? std::optional(control) : std::nullopt;
    case Kind::kSendLarge:
      return pieces && inside && (payload == 0) == (control.offset == 0) ? std::optional(control) : std::nullopt;
    case Kind::kWriteTo: return pieces && payload > 0 && control.length > 0 ? std::optional(control) : std::nullopt;
    case Kind::kDescribed: return payload % sizeof(RemoteBuffer) == 0 ? std::optional(control) : std::nullopt;
    case Kind::kHello: return control;
    default: return payload == 0 ? std::optional(control) : std::nullopt;
  }
}

/// The RemoteBuffers that a message names, if their sizes sum up to `size_bytes`.
inline std::optional<std::vector<RemoteBuffer>> pieces_of(std::span<const std::byte> payload,
                                                          std::uint64_t size_bytes) {
  std::vector<RemoteBuffer> pieces(payload.size() / sizeof(RemoteBuffer));
  if (!pieces.empty()) std::memcpy(pieces.data(), payload.data(), pieces.size() * sizeof(RemoteBuffer));
  std::uint64_t total = 0;
  for (const auto &piece : pieces)
    if (__builtin_add_overflow(total, piece.size_bytes, &total)) return std::nullopt;
  return total == size_bytes ? std::optional(std::move(pieces)) : std::nullopt;
}

}  // namespace nnti::wire

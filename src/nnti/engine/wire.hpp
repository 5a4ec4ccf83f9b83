// SPDX-License-Identifier: BSD-3-Clause
// What two contexts say to each other over an endpoint's messages. Each message is one Control, in the sender's byte
// order (both sides of an endpoint are alike), followed by its payload.
//
//   kind       operation    buffer           offset         length             result   payload
//   kHello     -            sender's process -              -                  -        its URL list
//   kSend      sender's id  destination or 0 -              the message's      -        the message
//   kSendLarge sender's id  destination or 0 -              the message's      -        RemoteBuffer to get it from
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
#pragma once

#include <nnti/nnti.hpp>

#include <cstring>
#include <optional>
#include <span>

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
  kAccessed
};

struct Control {
  static constexpr std::uint32_t kMagic = 0x4e4e5449;  // "NNTI"
  static constexpr std::uint16_t kVersion = 2;

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
  const bool known = control.kind >= Kind::kHello && control.kind <= Kind::kAccessed;
  if (control.magic != Control::kMagic || control.version != Control::kVersion || !known) return std::nullopt;
  const std::size_t payload = message.size() - sizeof control;
  switch (control.kind) {
    case Kind::kSend:
    case Kind::kResend: return control.length == payload ? std::optional(control) : std::nullopt;
    case Kind::kSendLarge: return payload == sizeof(RemoteBuffer) ? std::optional(control) : std::nullopt;
    case Kind::kDescribed: return payload % sizeof(RemoteBuffer) == 0 ? std::optional(control) : std::nullopt;
    case Kind::kHello: return control;
    default: return payload == 0 ? std::optional(control) : std::nullopt;
  }
}

/// A code that a peer claims.
inline Code code_of(std::uint64_t value) {
  return value <= static_cast<std::uint64_t>(Code::kInterrupted) ? static_cast<Code>(value) : Code::kBadMessage;
}

}  // namespace nnti::wire

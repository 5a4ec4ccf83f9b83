// SPDX-License-Identifier: BSD-3-Clause
// What two C transports say to each other over an endpoint's messages. Each message is one Control, in the sender's
// byte order (both sides of an endpoint are alike), followed by its payload.
//
//   kind       operation    buffer           offset, length         result   remote             payload
//   kHello     -            instance of mine -                      -        -                  my URL list
//   kSend      sender's id  destination or 0 -, payload's           -        -                  the message
//   kSendLarge sender's id  destination or 0 -, message's           -        where to get it    -
//   kClear     sender's id  -                -                      -        -                  -
//   kResend    sender's id  destination or 0 -, payload's           -        -                  the message
//   kSent      sender's id  -                -                      how      -                  -
//   kDescribe  -            asked for        -                      -        -                  -
//   kDescribed -            asked for        -                      how      where it is        -
//   kPut, kGot -            accessed         accessed range         -        -                  -
//
// A message whose destination is full is dropped by the receiver, which remembers its id and asks for it again (kClear)
// when its turn has come; kSent ends every send. kPut and kGot tell the owner of a buffer registered with events what
// was done to it.
#pragma once

#include <nnti/nnti.hpp>

#include <cstring>
#include <optional>
#include <span>

namespace nnti::c_api {

enum class Kind : std::uint16_t {
  kHello = 1,
  kSend,
  kSendLarge,
  kClear,
  kResend,
  kSent,
  kDescribe,
  kDescribed,
  kPut,
  kGot
};

struct Control {
  static constexpr std::uint32_t kMagic = 0x4e4e5449;  // "NNTI"
  static constexpr std::uint16_t kVersion = 1;

  std::uint32_t magic = kMagic;
  std::uint16_t version = kVersion;
  Kind kind = Kind::kHello;
  std::uint64_t operation = 0;
  std::uint64_t buffer = 0;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::uint64_t result = 0;
  RemoteBuffer remote = {};
};
static_assert(std::is_trivially_copyable_v<Control> && sizeof(Control) == 88);

/// The Control at the head of `message`, or nothing if it is none of ours or contradicts the message's size.
inline std::optional<Control> parse(std::span<const std::byte> message) {
  Control control;
  if (message.size() < sizeof control) return std::nullopt;
  std::memcpy(&control, message.data(), sizeof control);
  const bool known = control.kind >= Kind::kHello && control.kind <= Kind::kGot;
  if (control.magic != Control::kMagic || control.version != Control::kVersion || !known) return std::nullopt;
  const bool carries_message = control.kind == Kind::kSend || control.kind == Kind::kResend;
  if (carries_message && control.length != message.size() - sizeof control) return std::nullopt;
  return control;
}

}  // namespace nnti::c_api

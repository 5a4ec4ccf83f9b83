// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/channel/wire.hpp"

#include <fmt/core.h>

namespace nnti::channel {
namespace {

constexpr std::uint16_t kResume = 1;
constexpr std::size_t kOpeningBytes = 32, kOpenedBytes = 16;

template <class T> void put(std::byte *to, T value) {
  for (std::size_t i = 0; i < sizeof value; ++i)
    to[i] = static_cast<std::byte>(value >> (8 * (sizeof value - 1 - i)) & 0xff);
}

template <class T> T take(const std::byte *from) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof value; ++i) value = static_cast<T>(value << 8 | static_cast<T>(from[i]));
  return value;
}

Error bad(std::string_view what) {
  return {Code::kBadMessage, fmt::format("the peer's channel sent {}; run the same Nessie on both sides", what),
          nessie::Scope::kPeer};
}

Status check_version(std::uint16_t version) {
  if (version == kVersion) return {};
  return Error{Code::kUnsupported,
               fmt::format("the peer's channel speaks version {}, this process's version {}; run the same Nessie on "
                           "both sides",
                           version, kVersion),
               nessie::Scope::kPeer};
}

/// Neither nothing nor a lie: a side that could keep no message would never send one.
bool plausible(const Limits &limits) { return limits.messages > 0 && limits.bytes > 0; }

}  // namespace

void encode_header(const Header &header, std::span<std::byte, kHeaderBytes> bytes) {
  put(bytes.data(), std::uint64_t{header.type} << 56 | header.number);
  put(bytes.data() + 8, header.acknowledged);
}

std::optional<Header> decode_header(std::span<const std::byte> message) {
  if (message.size() < kHeaderBytes) return std::nullopt;
  const auto first = take<std::uint64_t>(message.data()), second = take<std::uint64_t>(message.data() + 8);
  if ((first >> 48 & 0xff) != 0 || second > kMaxNumber) return std::nullopt;
  return Header{static_cast<std::uint8_t>(first >> 56), first & kMaxNumber, second};
}

std::vector<std::byte> encode_opening(const Opening &opening) {
  std::vector<std::byte> body(kOpeningBytes);
  put(body.data(), kVersion);
  put(body.data() + 2, opening.resume ? kResume : std::uint16_t{0});
  put(body.data() + 4, opening.attempt);
  std::ranges::copy(opening.session, body.begin() + 8);
  put(body.data() + 24, opening.limits.messages);
  put(body.data() + 28, opening.limits.bytes);
  return body;
}

Result<Opening> decode_opening(std::span<const std::byte> body) {
  if (body.size() < 2) return bad("an incomplete opening");
  if (auto status = check_version(take<std::uint16_t>(body.data())); !status.ok()) return status.error();
  if (body.size() != kOpeningBytes) return bad("an opening of the wrong size");
  const auto flags = take<std::uint16_t>(body.data() + 2);
  Opening opening;
  opening.resume = flags == kResume;
  opening.attempt = take<std::uint32_t>(body.data() + 4);
  std::copy_n(body.begin() + 8, opening.session.size(), opening.session.begin());
  opening.limits = {take<std::uint32_t>(body.data() + 24), take<std::uint32_t>(body.data() + 28)};
  if (flags > kResume || !plausible(opening.limits)) return bad("an opening that makes no sense");
  return opening;
}

std::vector<std::byte> encode_opened(const Opened &opened) {
  std::vector<std::byte> body(kOpenedBytes);
  put(body.data(), kVersion);
  put(body.data() + 4, opened.attempt);
  put(body.data() + 8, opened.limits.messages);
  put(body.data() + 12, opened.limits.bytes);
  return body;
}

Result<Opened> decode_opened(std::span<const std::byte> body) {
  if (body.size() < 2) return bad("an incomplete answer to an opening");
  if (auto status = check_version(take<std::uint16_t>(body.data())); !status.ok()) return status.error();
  if (body.size() != kOpenedBytes || take<std::uint16_t>(body.data() + 2) != 0)
    return bad("an answer to an opening that makes no sense");
  Opened opened{take<std::uint32_t>(body.data() + 4),
                {take<std::uint32_t>(body.data() + 8), take<std::uint32_t>(body.data() + 12)}};
  if (!plausible(opened.limits)) return bad("an answer to an opening that makes no sense");
  return opened;
}

}  // namespace nnti::channel

// SPDX-License-Identifier: BSD-3-Clause
// A fuzz target: libFuzzer's entry point, and valid inputs to start from. For targets that decode messages, what they
// have in common: an input's first byte says which message it is meant to be.
#pragma once

#include <xdr/codec.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size);

namespace nssi::fuzz {

std::vector<std::vector<std::byte>> seeds();

inline void require(bool holds) {
  if (!holds) std::abort();
}

template <class Message> void ignore(const Message &) {}

/// Whatever is accepted as a message must be one: its encoding is the input. It is then used.
template <class Message, void (*use)(const Message &) = ignore<Message>> void decode(std::span<const std::byte> input) {
  const auto message = xdr::decode<Message>(input);
  if (!message.ok()) return;
  require(std::ranges::equal(xdr::encode(*message), input));
  use(*message);
}

using Decoder = void (*)(std::span<const std::byte> input);

/// Has the decoder that the first byte names decode the rest.
template <std::size_t N> void decode_one_of(const std::array<Decoder, N> &decoders, std::span<const std::byte> input) {
  if (!input.empty()) decoders[std::to_integer<std::size_t>(input[0]) % N](input.subspan(1));
}

/// An input for decode_one_of().
template <class Message> std::vector<std::byte> seed(std::size_t decoder, const Message &message) {
  std::vector<std::byte> bytes{static_cast<std::byte>(decoder)};
  const auto encoded = xdr::encode(message);
  bytes.insert(bytes.end(), encoded.begin(), encoded.end());
  return bytes;
}

}  // namespace nssi::fuzz

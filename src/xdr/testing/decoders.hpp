// SPDX-License-Identifier: BSD-3-Clause
// What fuzz targets that decode messages have in common: an input's first byte says which message it is meant to be.
#pragma once

#include "base/testing/fuzz.hpp"

#include <xdr/codec.hpp>

#include <algorithm>
#include <array>

namespace nessie::fuzz {

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
template <class Message> Bytes seed(std::size_t decoder, const Message &message) {
  Bytes bytes{static_cast<std::byte>(decoder)};
  const auto encoded = xdr::encode(message);
  bytes.insert(bytes.end(), encoded.begin(), encoded.end());
  return bytes;
}

}  // namespace nessie::fuzz

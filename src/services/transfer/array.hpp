// SPDX-License-Identifier: BSD-3-Clause
// What the elements of an array are: the paper's rule, by which either side knows what the other one must have sent.
#pragma once

#include <transfer.hpp>

#include <nessie/result.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace transfer {

static_assert(sizeof(data_t) == 16, "an array lies in memory as the papers' C has it, without padding");

/// Element `index` of an array of that seed: seed + 1024 + index, in each of the three types. The sum wraps around.
inline data_t element(std::int32_t seed, std::uint64_t index) {
  const auto value =
      static_cast<std::int32_t>(static_cast<std::uint32_t>(seed) + 1024u + static_cast<std::uint32_t>(index));
  return {value, static_cast<float>(value), static_cast<double>(value)};
}

/// Makes `part` the elements from `first` on.
void fill(std::span<data_t> part, std::int32_t seed, std::uint64_t first = 0);
/// Whether `part` is the elements from `first` on. kBadMessage, which names the first that is not.
nessie::Status check(std::span<const data_t> part, std::int32_t seed, std::uint64_t first = 0);

/// How many bytes the array takes as an XDR array.
inline std::uint64_t encoded_bytes(std::uint32_t len) { return sizeof len + std::uint64_t{len} * sizeof(data_t); }
/// Writes the encoding of `part`.
void encode(std::span<std::byte> at, std::span<const data_t> part);
/// Writes that of `len` elements from `first` on, without ever having them in memory; without a seed, of any elements.
void encode(std::span<std::byte> at, std::uint32_t len, std::optional<std::int32_t> seed, std::uint64_t first = 0);
/// Decodes to where `part` is. kBadMessage: it is not an array of that length.
nessie::Status decode(std::span<const std::byte> bytes, std::span<data_t> part);

}  // namespace transfer

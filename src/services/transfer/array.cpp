// SPDX-License-Identifier: BSD-3-Clause
#include <services/transfer/array.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

namespace transfer {
namespace {

/// Compared as bits, so that a block of elements is compared without a branch in it.
std::uint64_t difference(const data_t &a, const data_t &b) {
  const auto narrow = static_cast<std::uint32_t>(a.int_val ^ b.int_val) |
                      (std::bit_cast<std::uint32_t>(a.float_val) ^ std::bit_cast<std::uint32_t>(b.float_val));
  return narrow | (std::bit_cast<std::uint64_t>(a.double_val) ^ std::bit_cast<std::uint64_t>(b.double_val));
}

bool is_right(std::span<const data_t> block, std::int32_t seed, std::uint64_t first) {
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < block.size(); ++i) wrong |= difference(block[i], element(seed, first + i));
  return wrong == 0;
}

nessie::Error name_the_wrong_one(std::span<const data_t> block, std::int32_t seed, std::uint64_t first) {
  std::size_t i = 0;
  while (difference(block[i], element(seed, first + i)) == 0) ++i;
  const auto &is = block[i];
  return {nessie::Code::kBadMessage,
          fmt::format("element {} is {{{}, {}, {}}}, not {}: the array is not that of seed {}", first + i, is.int_val,
                      is.float_val, is.double_val, element(seed, first + i).int_val, seed)};
}

}  // namespace

void fill(std::span<data_t> part, std::int32_t seed, std::uint64_t first) {
  for (std::size_t i = 0; i < part.size(); ++i) part[i] = element(seed, first + i);
}

nessie::Status check(std::span<const data_t> part, std::int32_t seed, std::uint64_t first) {
  constexpr std::size_t kBlock = 256;
  for (std::size_t begin = 0; begin < part.size(); begin += kBlock) {
    const auto block = part.subspan(begin, std::min(kBlock, part.size() - begin));
    if (!is_right(block, seed, first + begin)) return name_the_wrong_one(block, seed, first + begin);
  }
  return {};
}

void encode(std::span<std::byte> at, std::span<const data_t> part) {
  xdr::Writer writer(at.data());
  writer(part);
}

void encode(std::span<std::byte> at, std::uint32_t len, std::optional<std::int32_t> seed, std::uint64_t first) {
  xdr::Writer writer(at.data());
  writer(len);
  std::array<data_t, 256> block{};  // stays in the first cache
  std::size_t begin = 0;
  const auto make = [&](std::span<data_t> elements) {
    if (seed) fill(elements, *seed, first + begin);
  };
  for (; len - begin >= block.size(); begin += block.size()) {
    make(block);
    writer(block);
  }
  const auto rest = std::span(block).first(len - begin);
  make(rest);
  for (auto &element : rest) writer(element);
}

nessie::Status decode(std::span<const std::byte> bytes, std::span<data_t> part) {
  xdr::Reader reader(bytes);
  reader(part);
  return reader.finish();
}

}  // namespace transfer

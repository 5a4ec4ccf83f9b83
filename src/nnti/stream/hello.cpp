// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/stream/hello.hpp"

#include <cstring>

namespace nnti::stream {
namespace {

constexpr std::uint32_t kMagic = 0x4e4c414e;
constexpr std::uint32_t kVersion = 1;

struct LaneHello {
  std::uint32_t magic = kMagic;
  std::uint32_t version = kVersion;
  std::uint64_t token = 0;
};
static_assert(sizeof(LaneHello) == 16);

}  // namespace

nessie::Result<bool> lanes_wanted(const nessie::Config &config) {
  const auto value = config.get_or("nnti.lane", "on");
  if (value == "on" || value == "off") return value == "on";
  return config.bad_value("nnti.lane", "on or off");
}

std::vector<std::byte> encode_lane_hello(std::uint64_t token) {
  LaneHello hello;
  hello.token = token;
  std::vector<std::byte> bytes(sizeof hello);
  std::memcpy(bytes.data(), &hello, sizeof hello);
  return bytes;
}

std::optional<std::uint64_t> decode_lane_hello(std::span<const std::byte> bytes) {
  LaneHello hello;
  if (bytes.size() != sizeof hello) return std::nullopt;
  std::memcpy(&hello, bytes.data(), sizeof hello);
  if (hello.magic != kMagic || hello.version != kVersion) return std::nullopt;
  return hello.token;
}

}  // namespace nnti::stream

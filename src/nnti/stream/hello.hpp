// SPDX-License-Identifier: BSD-3-Clause
// How a connection gets its lane: the side that connects goes through the bootstrap a second time, at the same address,
// and says in its hello which connection the socket is for, by the token that the other side gave it.
#pragma once

#include <base/config.hpp>
#include <nessie/result.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace nnti::stream {

/// Of the nnti.lane setting: whether connections may have a lane. kInvalidArgument.
nessie::Result<bool> lanes_wanted(const nessie::Config &config);

std::vector<std::byte> encode_lane_hello(std::uint64_t token);
/// The token; empty: it is the hello of something else.
std::optional<std::uint64_t> decode_lane_hello(std::span<const std::byte> bytes);

}  // namespace nnti::stream

// SPDX-License-Identifier: BSD-3-Clause
// Fuzz targets of what a context reads from its peers, and of what Trios' programs unpack. Each takes any bytes and
// returns; it must not crash, hang, or read outside. libFuzzer programs with -DNESSIE_FUZZ=ON, and run by
// fuzz_test.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace nnti::fuzz {

/// Messages from a peer that has greeted: for each, one byte that says where the context's own ids go into it, two of
/// length, and the message.
void hear_peer(std::span<const std::byte> bytes);
/// Well-formed inputs of hear_peer().
std::vector<std::vector<std::byte>> conversations_with_a_context();

/// NNTI_dt_unpack and NNTI_dt_free of Trios.
void unpack_handles(std::span<const std::byte> bytes);
std::vector<std::vector<std::byte>> packed_handles();

}  // namespace nnti::fuzz

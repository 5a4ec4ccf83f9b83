// SPDX-License-Identifier: BSD-3-Clause
// The system's random source.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace nessie {

/// Fills `bytes`. Without randomness no key of ours is a secret: then the process ends.
void random_bytes(std::span<std::byte> bytes);
std::uint64_t random_u64();

}  // namespace nessie

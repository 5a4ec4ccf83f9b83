// SPDX-License-Identifier: BSD-3-Clause
// A fuzz target: libFuzzer's entry point, and valid inputs to start from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size);

namespace nssi::fuzz {
std::vector<std::vector<std::byte>> seeds();
}

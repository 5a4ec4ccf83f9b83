// SPDX-License-Identifier: BSD-3-Clause
// A fuzz target is a file NAME_fuzz.cpp beside what reads bytes from outside: libFuzzer's entry point, which takes any
// bytes and returns (it must not crash, hang, or read outside), and, if it has them, well-formed inputs to begin with.
// nessie_fuzz() makes two programs of it: libFuzzer's, and a test (fuzz_main.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size);

namespace nessie::fuzz {

using Bytes = std::vector<std::byte>;

/// Weak: a target may be without.
std::vector<Bytes> seeds() __attribute__((weak));

inline void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace nessie::fuzz

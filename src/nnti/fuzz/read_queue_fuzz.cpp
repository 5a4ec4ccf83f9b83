// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  nnti::fuzz::read_queue(std::as_bytes(std::span(data, size)));
  return 0;
}

// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/work/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  nnti::fuzz::unpack_handles(std::as_bytes(std::span(data, size)));
  return 0;
}

// SPDX-License-Identifier: BSD-3-Clause
// libFuzzer: whatever a peer may put into a greeting.
#include "nnti/transports/ofi/wire.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  (void)nnti::ofi::decode_hello(std::as_bytes(std::span(data, size)));
  return 0;
}

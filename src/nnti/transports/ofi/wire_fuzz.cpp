// SPDX-License-Identifier: BSD-3-Clause
// libFuzzer: whatever a peer may put into a frame or a greeting.
#include "nnti/transports/ofi/wire.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  const std::span bytes(reinterpret_cast<const std::byte *>(data), size);
  (void)nnti::ofi::decode_frame(bytes);
  (void)nnti::ofi::decode_hello(bytes);
  return 0;
}

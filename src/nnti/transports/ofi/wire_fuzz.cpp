// SPDX-License-Identifier: BSD-3-Clause
// libFuzzer: whatever a peer may put into a frame, a greeting, or a message of the C interface.
#include "nnti/c_api_wire.hpp"
#include "nnti/transports/ofi/wire.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  const std::span bytes(reinterpret_cast<const std::byte *>(data), size);
  (void)nnti::ofi::decode_frame(bytes);
  (void)nnti::ofi::decode_hello(bytes);
  (void)nnti::c_api::parse(bytes);
  return 0;
}

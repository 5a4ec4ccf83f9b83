// SPDX-License-Identifier: BSD-3-Clause
// libFuzzer: whatever a peer may put into a frame.
#include "nnti/transports/mpi/wire.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  const auto frame = nnti::mpi::decode_frame(std::as_bytes(std::span(data, size)));
  if (frame && frame->body.size() + sizeof(nnti::mpi::FrameHeader) != size) __builtin_trap();
  return 0;
}

// SPDX-License-Identifier: BSD-3-Clause
// libFuzzer: whatever a peer may put into a frame.
#include "nnti/framed/frame_testing.hpp"
#include "nnti/transports/mpi/wire.hpp"

#include <base/testing/fuzz.hpp>

using namespace nnti::mpi;
using nnti::framed::frame_of;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  const auto frame = decode_frame(std::as_bytes(std::span(data, size)));
  nessie::fuzz::require(!frame || frame->body.size() + sizeof(FrameHeader) == size);
  return 0;
}

std::vector<nessie::fuzz::Bytes> nessie::fuzz::seeds() {
  return {frame_of({.type = FrameType::kPut, .length = 64}, 64),
          frame_of({.type = FrameType::kGet, .result = kFirstBulkTag, .length = 1 << 20}, 0)};
}

// SPDX-License-Identifier: BSD-3-Clause
// libFuzzer: whatever a peer may put into a frame, or a chunk's header.
#include "nnti/framed/frame_testing.hpp"

#include <base/testing/fuzz.hpp>

#include <algorithm>

using namespace nnti::framed;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto frame = decode_frame(bytes);
  nessie::fuzz::require(!frame || frame->body.size() + sizeof(FrameHeader) == size);
  const auto head = bytes.first(std::min(size, sizeof(ChunkHeader)));
  const auto chunk = decode_chunk(head, size - head.size());
  nessie::fuzz::require(!chunk || chunk->at + (size - head.size()) <= chunk->length);
  return 0;
}

std::vector<nessie::fuzz::Bytes> nessie::fuzz::seeds() {
  return {frame_of({.type = FrameType::kPut, .length = 64}, 64), frame_of({.type = FrameType::kGet}, 0)};
}

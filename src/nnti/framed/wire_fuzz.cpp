// SPDX-License-Identifier: BSD-3-Clause
// libFuzzer: whatever a peer may put into a frame, or a chunk's header.
#include "nnti/framed/wire.hpp"

#include <algorithm>

using namespace nnti::framed;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto frame = decode_frame(bytes);
  if (frame && frame->body.size() + sizeof(FrameHeader) != size) __builtin_trap();
  const auto head = bytes.first(std::min(size, sizeof(ChunkHeader)));
  const auto chunk = decode_chunk(head, size - head.size());
  if (chunk && chunk->at + (size - head.size()) > chunk->length) __builtin_trap();
  return 0;
}

// SPDX-License-Identifier: BSD-3-Clause
// libFuzzer: whatever a peer may put into a chunk's header or a greeting.
#include "nnti/transports/ucx/wire.hpp"

#include <algorithm>

using namespace nnti::ucx;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto head = bytes.first(std::min(size, sizeof(Chunk)));
  const auto chunk = decode_chunk(head, size - head.size());
  if (chunk && chunk->header.at + (size - head.size()) > chunk->header.length) __builtin_trap();
  const auto hello = decode_hello(bytes);
  if (hello.ok() && hello->address.size() > kMaxAddressBytes) __builtin_trap();
  return 0;
}

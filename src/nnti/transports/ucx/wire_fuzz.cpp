// SPDX-License-Identifier: BSD-3-Clause
// libFuzzer: whatever a peer may put into a chunk's header or a greeting.
#include "nnti/transports/ucx/wire.hpp"

#include <base/testing/fuzz.hpp>

#include <algorithm>

using namespace nnti::ucx;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto head = bytes.first(std::min(size, sizeof(Chunk)));
  const auto chunk = decode_chunk(head, size - head.size());
  nessie::fuzz::require(!chunk || chunk->header.at + (size - head.size()) <= chunk->header.length);
  const auto hello = decode_hello(bytes);
  nessie::fuzz::require(!hello.ok() || hello->address.size() + 24 == size);
  return 0;
}

std::vector<nessie::fuzz::Bytes> nessie::fuzz::seeds() { return {encode_hello({42, Bytes(28)})}; }

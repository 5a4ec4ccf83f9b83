// SPDX-License-Identifier: BSD-3-Clause
// libFuzzer: whatever a peer may put into a greeting.
#include "nnti/transports/ofi/wire.hpp"

#include <base/testing/fuzz.hpp>

using namespace nnti::ofi;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  const auto hello = decode_hello(std::as_bytes(std::span(data, size)));
  nessie::fuzz::require(!hello.ok() || hello->name.size() <= kMaxNameBytes);
  return 0;
}

std::vector<nessie::fuzz::Bytes> nessie::fuzz::seeds() { return {encode_hello({42, "tcp", Bytes(28)})}; }

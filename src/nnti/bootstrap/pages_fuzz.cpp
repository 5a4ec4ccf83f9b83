// SPDX-License-Identifier: BSD-3-Clause
// A byte stream into the decoder of pages.
#include "nnti/bootstrap/conversations.hpp"

#include <algorithm>

using namespace nnti::bootstrap;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  PageDecoder decoder;
  for (auto left = std::as_bytes(std::span(data, size)); !left.empty();) {
    const auto piece = std::min(left.size(), 1 + std::to_integer<std::size_t>(left[0]));
    decoder.feed(left.first(piece));
    left = left.subspan(piece);
    for (;;) {
      const auto page = decoder.next();
      if (!page.ok()) return 0;
      if (!*page) break;
    }
  }
  return 0;
}

std::vector<nessie::fuzz::Bytes> nessie::fuzz::seeds() { return conversations(); }

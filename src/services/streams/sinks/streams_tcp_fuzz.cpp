// SPDX-License-Identifier: BSD-3-Clause
#include "services/streams/sinks/frames.hpp"

#include <base/testing/fuzz.hpp>

#include <algorithm>

using namespace nessie::streams::sinks;

/// Whatever is accepted is written to the same bytes, and how much there is to read is known from its beginning.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  const std::span bytes(reinterpret_cast<const std::byte *>(data), size);
  const auto is_same = [&](const auto &message) { return std::ranges::equal(encode(message), bytes); };
  if (const auto opening = decode_opening(bytes); opening.ok())
    nessie::fuzz::require(is_same(*opening) && *rest_of_opening(bytes.first(kOpeningBegin)) == size - kOpeningBegin);
  if (const auto head = decode_head(bytes); head.ok()) nessie::fuzz::require(is_same(*head));
  if (const auto answer = decode_answer(bytes); answer.ok())
    nessie::fuzz::require(is_same(*answer) && *rest_of_answer(bytes.first(kAnswerBegin)) == size - kAnswerBegin);
  if (size >= kOpeningBegin)
    if (const auto rest = rest_of_opening(bytes.first(kOpeningBegin)); rest.ok())
      nessie::fuzz::require(*rest <= kMostStreamName + 4);
  if (size >= kAnswerBegin)
    if (const auto rest = rest_of_answer(bytes.first(kAnswerBegin)); rest.ok())
      nessie::fuzz::require(*rest <= kMostAnswerText + 4);
  return 0;
}

std::vector<nessie::fuzz::Bytes> nessie::fuzz::seeds() {
  return {encode(Opening{"flow", 1}), encode(Head{false, 7, 3, 0x364b3fb7}), encode(Head{true, 8, 0, 0}),
          encode(Answer{true, 7, {}}), encode(Answer{false, 7, "no space left on the device"})};
}

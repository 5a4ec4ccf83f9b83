// SPDX-License-Identifier: BSD-3-Clause
// What goes over a TCP connection between who hands on a stream's steps and who takes them: TCP.md.
#pragma once

#include <nessie/result.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace nessie::streams::sinks {

using Bytes = std::vector<std::byte>;

inline constexpr std::uint32_t kTcpVersion = 1;
inline constexpr std::size_t kMostStreamName = 256, kMostAnswerText = 1024;
/// What is read before it is known how much more there is; of the head of a step, all.
inline constexpr std::size_t kOpeningBegin = 20, kHeadBytes = 28, kAnswerBegin = 16;

struct Opening {
  std::string stream;
  std::uint64_t identity = 0;  ///< of this stream, and no other one of that name; 0: not known
  bool operator==(const Opening &) const = default;
};

/// In front of a step's image; or the end of the stream, which has none.
struct Head {
  bool is_end = false;
  std::uint64_t number = 0;
  std::uint64_t image_bytes = 0;
  std::uint32_t image_checksum = 0;
  bool operator==(const Head &) const = default;
};

struct Answer {
  bool is_safe = true;
  std::uint64_t number = 0;
  std::string text;
  bool operator==(const Answer &) const = default;
};

/// A name, or text, that is too long is cut.
Bytes encode(const Opening &opening);
Bytes encode(const Head &head);
Bytes encode(const Answer &answer);

/// How many bytes follow the first kOpeningBegin, or kAnswerBegin, which `begin` has. kBadMessage: it is none.
/// kUnsupported: of another version.
Result<std::size_t> rest_of_opening(std::span<const std::byte> begin);
Result<std::size_t> rest_of_answer(std::span<const std::byte> begin);

/// All of it, and nothing else. kBadMessage, kUnsupported.
Result<Opening> decode_opening(std::span<const std::byte> bytes);
Result<Head> decode_head(std::span<const std::byte> bytes);
Result<Answer> decode_answer(std::span<const std::byte> bytes);

}  // namespace nessie::streams::sinks

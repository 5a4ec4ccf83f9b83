// SPDX-License-Identifier: BSD-3-Clause
#include "services/streams/sinks/frames.hpp"

#include <base/crc32c.hpp>

#include <fmt/core.h>

#include <algorithm>
#include <string_view>

namespace nessie::streams::sinks {

namespace {

constexpr std::string_view kOpening = "NSTP", kStep = "STEP", kOver = "OVER", kDone = "DONE", kFail = "FAIL";
constexpr std::size_t kChecksumBytes = 4;

template <class T> void put_number(Bytes &to, T value) {
  for (std::size_t at = sizeof value; at-- > 0;) to.push_back(static_cast<std::byte>(value >> (8 * at)));
}

void put_word(Bytes &to, std::string_view word) {
  const auto bytes = std::as_bytes(std::span(word));
  to.insert(to.end(), bytes.begin(), bytes.end());
}

Bytes with_checksum(Bytes bytes) {
  put_number(bytes, crc32c(bytes));
  return bytes;
}

template <class T> T number_at(std::span<const std::byte> bytes, std::size_t at) {
  T value = 0;
  for (std::size_t index = 0; index < sizeof value; ++index)
    value = static_cast<T>(value << 8) | static_cast<T>(bytes[at + index]);
  return value;
}

std::string_view word_at(std::span<const std::byte> bytes, std::size_t at, std::size_t size) {
  return {reinterpret_cast<const char *>(bytes.data()) + at, size};
}

bool has_its_checksum(std::span<const std::byte> bytes) {
  const auto end = bytes.size() - kChecksumBytes;
  return number_at<std::uint32_t>(bytes, end) == crc32c(bytes.first(end));
}

Error bad(const char *what) {
  return {Code::kBadMessage, fmt::format("what comes over the connection is no {} as TCP.md says", what), Scope::kPeer};
}

}  // namespace

Bytes encode(const Opening &opening) {
  const auto name = std::string_view(opening.stream).substr(0, kMostStreamName);
  Bytes bytes;
  put_word(bytes, kOpening);
  put_number(bytes, kTcpVersion);
  put_number(bytes, opening.identity);
  put_number(bytes, static_cast<std::uint32_t>(name.size()));
  put_word(bytes, name);
  return with_checksum(std::move(bytes));
}

Bytes encode(const Head &head) {
  Bytes bytes;
  put_word(bytes, head.is_end ? kOver : kStep);
  put_number(bytes, head.image_checksum);
  put_number(bytes, head.number);
  put_number(bytes, head.image_bytes);
  return with_checksum(std::move(bytes));
}

Bytes encode(const Answer &answer) {
  const auto text = std::string_view(answer.text).substr(0, kMostAnswerText);
  Bytes bytes;
  put_word(bytes, answer.is_safe ? kDone : kFail);
  put_number(bytes, static_cast<std::uint32_t>(text.size()));
  put_number(bytes, answer.number);
  put_word(bytes, text);
  return with_checksum(std::move(bytes));
}

Result<std::size_t> rest_of_opening(std::span<const std::byte> begin) {
  if (begin.size() < kOpeningBegin || word_at(begin, 0, 4) != kOpening) return bad("opening");
  if (const auto version = number_at<std::uint32_t>(begin, 4); version != kTcpVersion)
    return Error{Code::kUnsupported,
                 fmt::format("the other side speaks version {} of TCP.md, and this one {}", version, kTcpVersion),
                 Scope::kPeer};
  const auto name_bytes = number_at<std::uint32_t>(begin, 16);
  if (name_bytes == 0 || name_bytes > kMostStreamName) return bad("opening");
  return name_bytes + kChecksumBytes;
}

Result<std::size_t> rest_of_answer(std::span<const std::byte> begin) {
  if (begin.size() < kAnswerBegin) return bad("answer");
  const auto word = word_at(begin, 0, 4);
  const auto text_bytes = number_at<std::uint32_t>(begin, 4);
  if ((word != kDone && word != kFail) || text_bytes > kMostAnswerText) return bad("answer");
  return text_bytes + kChecksumBytes;
}

Result<Opening> decode_opening(std::span<const std::byte> bytes) {
  const auto rest = rest_of_opening(bytes);
  if (!rest.ok()) return rest.error();
  if (bytes.size() != kOpeningBegin + *rest || !has_its_checksum(bytes)) return bad("opening");
  return Opening{std::string(word_at(bytes, kOpeningBegin, *rest - kChecksumBytes)),
                 number_at<std::uint64_t>(bytes, 8)};
}

Result<Head> decode_head(std::span<const std::byte> bytes) {
  if (bytes.size() != kHeadBytes || !has_its_checksum(bytes)) return bad("step");
  const auto word = word_at(bytes, 0, 4);
  if (word != kStep && word != kOver) return bad("step");
  const Head head{word == kOver, number_at<std::uint64_t>(bytes, 8), number_at<std::uint64_t>(bytes, 16),
                  number_at<std::uint32_t>(bytes, 4)};
  if (head.is_end && (head.image_bytes != 0 || head.image_checksum != 0)) return bad("end");
  return head;
}

Result<Answer> decode_answer(std::span<const std::byte> bytes) {
  const auto rest = rest_of_answer(bytes);
  if (!rest.ok()) return rest.error();
  if (bytes.size() != kAnswerBegin + *rest || !has_its_checksum(bytes)) return bad("answer");
  return Answer{word_at(bytes, 0, 4) == kDone, number_at<std::uint64_t>(bytes, 8),
                std::string(word_at(bytes, kAnswerBegin, *rest - kChecksumBytes))};
}

}  // namespace nessie::streams::sinks

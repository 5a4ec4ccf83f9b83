// SPDX-License-Identifier: BSD-3-Clause
#include <nssi/wire/wire.hpp>

namespace nssi::wire {

using nessie::Code;
using nessie::Error;
using nessie::Scope;

namespace {

constexpr std::size_t kMaxErrorText = 2048;

bool sound(const std::optional<Buffer> &buffer) { return !buffer || buffer->remote.rights <= nnti::Rights::kReadWrite; }

bool is_within(const Segment &segment, const std::vector<Buffer> &buffers) {
  if (segment.buffer >= buffers.size() || segment.size_bytes == 0) return false;
  const auto whole = buffers[segment.buffer].remote.size_bytes;
  return segment.offset <= whole && segment.size_bytes <= whole - segment.offset;
}

/// A text of UTF-8 is cut where a character begins.
std::string_view shortened(std::string_view text) {
  if (text.size() <= kMaxErrorText) return text;
  auto end = kMaxErrorText;
  while (end > kMaxErrorText - 4 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

Error bad(const char *message) { return Error{Code::kBadMessage, message}; }

}  // namespace

nessie::Status decode_request(std::span<const std::byte> message, Request &request) {
  auto status = xdr::decode_into(message, request);
  if (!status.ok()) return status;
  if (request.prefix.kind != Kind::kRequest) return bad("the message is not a request");
  if (request.carries == 0) return status;
  if (!sound(request.data) || !sound(request.long_args)) return bad("a buffer's rights are not known ones");
  if (request.data_is_list && (!request.data || request.data->remote.size_bytes > kMostListBytes))
    return bad("a request's list of segments is nowhere, or longer than any may be");
  if (request.segments) {
    if (request.data) return bad("a request has more than one description of its data");
    Segments segments;
    if (auto sound = decode_segments(*request.segments, segments); !sound.ok()) return sound;
  }
  if (request.long_args && !request.args.empty()) return bad("a request has both short and long arguments");
  return status;
}

nessie::Status decode_segments(std::span<const std::byte> list, Segments &segments) {
  if (list.size() > kMostListBytes) return bad("a list of segments is longer than any may be");
  if (auto status = xdr::decode_into(list, segments); !status.ok()) return status;
  if (segments.segments.empty() || segments.segments.size() > kMostSegments ||
      segments.buffers.size() > segments.segments.size())
    return bad("a list of segments has none, more than it may have, or buffers that nothing is in");
  std::uint64_t all = 0;
  for (const auto &buffer : segments.buffers)
    if (!sound(buffer)) return bad("a buffer's rights are not known ones");
  for (const auto &segment : segments.segments) {
    if (!is_within(segment, segments.buffers)) return bad("a segment is empty, or not within its buffer");
    if (__builtin_add_overflow(all, segment.size_bytes, &all)) return bad("segments are too large together");
  }
  return {};
}

nessie::Status decode_result(std::span<const std::byte> message, Result &result) {
  auto status = xdr::decode_into(message, result);
  if (!status.ok()) return status;
  if (result.prefix.kind != Kind::kResult) return bad("the message is not a result");
  if (!sound(result.long_result)) return bad("a buffer's rights are not known ones");
  if (result.failure && (result.failure->code == 0 || result.failure->scope > 3))
    return bad("a result's error is not one");
  return status;
}

bool is_error(std::int64_t code, std::int64_t scope) {
  switch (code) {
#define NSSI_WIRE_IS_CODE(name, number, result, next) \
  case number: return number != NESSIE_OK && scope >= 0 && scope <= static_cast<int>(Scope::kProcess);
    NESSIE_CODES(NSSI_WIRE_IS_CODE)
#undef NSSI_WIRE_IS_CODE
    default: return false;
  }
}

Failure to_failure(const Error &error) {
  return {static_cast<std::uint32_t>(error.code), static_cast<std::uint32_t>(error.scope), error.cause,
          shortened(error.message)};
}

Error to_error(const Failure &failure) {
  return {static_cast<Code>(failure.code), std::string(failure.message), static_cast<Scope>(failure.scope),
          failure.cause};
}

}  // namespace nssi::wire

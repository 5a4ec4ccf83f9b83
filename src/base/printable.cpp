// SPDX-License-Identifier: BSD-3-Clause
#include "base/printable.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>

namespace nessie {

namespace {

struct Lead {
  std::size_t length;         ///< of the sequence; 0: no sequence begins so
  std::uint32_t bits, least;  ///< of the code point: what the byte holds of it, and the smallest that needs this length
};

Lead lead_of(unsigned char byte) {
  if (byte < 0x80) return {1, byte, 0};
  if (byte >> 5 == 0x6) return {2, byte & 0x1fu, 0x80};
  if (byte >> 4 == 0xe) return {3, byte & 0x0fu, 0x800};
  if (byte >> 3 == 0x1e) return {4, byte & 0x07u, 0x10000};
  return {0, 0, 0};
}

bool is_scalar(std::uint32_t point) { return point <= 0x10ffff && (point < 0xd800 || point > 0xdfff); }

/// The length of the well-formed sequence that `text` begins with; 0: none.
std::size_t sequence(std::string_view text) {
  auto [length, point, least] = lead_of(static_cast<unsigned char>(text.front()));
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte >> 6 != 0x2) return 0;
    point = point << 6 | (byte & 0x3fu);
  }
  return point >= least && is_scalar(point) ? length : 0;
}

std::string escaped(char byte) {
  switch (byte) {
    case '\n': return "\\n";
    case '\t': return "\\t";
    case '\r': return "\\r";
    default: return fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  }
}

bool is_control(std::string_view sequence) {
  const auto first = static_cast<unsigned char>(sequence.front());
  if (sequence.size() == 1) return first < 0x20 || first == 0x7f;
  return sequence.size() == 2 && first == 0xc2 && static_cast<unsigned char>(sequence[1]) < 0xa0;  // C1
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto length = sequence(text);
    const auto next = text.substr(0, length == 0 ? 1 : length);
    if (length != 0 && !is_control(next))
      out += next;
    else
      for (const char byte : next) out += escaped(byte);
    text.remove_prefix(next.size());
  }
  return out;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const auto length = sequence(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string to_utf8(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto length = sequence(text);
    out += length == 0 ? "\xef\xbf\xbd" : text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

std::string hex_bytes(std::string_view text) {
  std::string out;
  for (const char byte : text) out += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return out;
}

}  // namespace nessie

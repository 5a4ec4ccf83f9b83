// SPDX-License-Identifier: BSD-3-Clause
// Ranges of addresses, and the pages that they touch.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <limits>

namespace nnti {

/// [begin, end).
struct AddressRange {
  std::uintptr_t begin = 0, end = 0;

  bool empty() const { return begin >= end; }
  std::size_t size_bytes() const { return empty() ? 0 : end - begin; }
  bool overlaps(const AddressRange &other) const { return begin < other.end && other.begin < end; }
  bool covers(const AddressRange &other) const { return begin <= other.begin && other.end <= end; }
  bool operator==(const AddressRange &) const = default;
};

inline constexpr AddressRange kAllAddresses = {0, std::numeric_limits<std::uintptr_t>::max()};

inline std::uintptr_t page_bytes() {
  static const auto size = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

/// The whole pages that [begin, begin + size_bytes) touches; what would reach beyond the last address ends there.
inline AddressRange pages_of(std::uintptr_t begin, std::uintptr_t size_bytes) {
  const auto mask = page_bytes() - 1;
  if (size_bytes == 0) return {};
  if (size_bytes > kAllAddresses.end - mask - begin) return {begin & ~mask, kAllAddresses.end};
  return {begin & ~mask, (begin + size_bytes + mask) & ~mask};
}

}  // namespace nnti

// SPDX-License-Identifier: BSD-3-Clause
// CRC32C (RFC 3720, appendix B.4), by the processor's own instructions where it has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace nessie {

/// Of `bytes` behind others, whose checksum is `before`; 0: behind none.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0);

/// The same, without such instructions.
std::uint32_t crc32c_by_tables(std::span<const std::byte> bytes, std::uint32_t before = 0);

/// The same, by the instructions of older processors.
std::uint32_t crc32c_without_folding(std::span<const std::byte> bytes, std::uint32_t before = 0);

/// Copies, as memcpy() does, and returns the checksum of what it has copied, in one pass over memory.
std::uint32_t copy_crc32c(void *to, const void *from, std::size_t size_bytes, std::uint32_t before = 0);

/// The checksum of two sequences joined, from theirs.
std::uint32_t join_crc32c(std::uint32_t first, std::uint32_t second, std::uint64_t second_bytes);

/// What so many bytes of zeros behind a sequence make of its checksum: join_crc32c(first, second, second_bytes) is
/// Crc32cShift(second_bytes)(first) ^ second. For many at the same distance.
class Crc32cShift {
 public:
  explicit Crc32cShift(std::uint64_t zero_bytes);
  std::uint32_t operator()(std::uint32_t checksum) const;

 private:
  std::uint32_t power_;
};

}  // namespace nessie

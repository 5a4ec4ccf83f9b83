// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/header_records.hpp>

#include <sys/types.h>
#include <unistd.h>
#include <array>
#include <cstddef>
#include <cstring>

namespace staging {

namespace {

/// The width of the header's number of records, big-endian at offset 4: 4 bytes, 8 in CDF-5. 0: no such file.
std::size_t records_width(int fd) {
  std::array<char, 4> magic{};
  if (::pread(fd, magic.data(), magic.size(), 0) != 4 || std::memcmp(magic.data(), "CDF", 3) != 0) return 0;
  return magic[3] == 5 ? 8 : 4;
}

}  // namespace

bool read_num_records(int fd, std::uint64_t &value) {
  std::array<unsigned char, 8> bytes{};
  const auto width = records_width(fd);
  if (width == 0 || ::pread(fd, bytes.data(), width, 4) != static_cast<ssize_t>(width)) return false;
  value = 0;
  for (std::size_t i = 0; i < width; ++i) value = value << 8 | bytes[i];
  return true;
}

bool write_num_records(int fd, std::uint64_t value) {
  std::array<unsigned char, 8> bytes{};
  const auto width = records_width(fd);
  for (std::size_t i = 0; i < width; ++i) bytes[i] = static_cast<unsigned char>(value >> 8 * (width - 1 - i));
  return width != 0 && ::pwrite(fd, bytes.data(), width, 4) == static_cast<ssize_t>(width);
}

bool lost_header(int fd) {
  std::array<char, 12> begin{};
  const auto size = ::pread(fd, begin.data(), begin.size(), 0);
  return size >= 0 && (size < static_cast<ssize_t>(begin.size()) || std::memcmp(begin.data(), "CDF", 3) != 0);
}

}  // namespace staging

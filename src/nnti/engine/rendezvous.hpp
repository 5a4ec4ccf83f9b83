// SPDX-License-Identifier: BSD-3-Clause
// From which size on a message is written by its sender, and not only read by its receiver.
#pragma once

#include <base/config.hpp>
#include <nessie/result.hpp>

#include <cstdint>
#include <limits>

namespace nnti {

struct Rendezvous {
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

  std::uint64_t write_from = kNever;  ///< bytes
  unsigned read_percent = 50;         ///< of a message that is written: how much the receiver reads meanwhile

  /// How much of a message of `size_bytes` its receiver is to read, from the front.
  std::uint64_t readable(std::uint64_t size_bytes) const {
    constexpr std::uint64_t kPage = 4096;
    return size_bytes < write_from ? size_bytes : size_bytes / 100 * read_percent / kPage * kPage;
  }
};

}  // namespace nnti

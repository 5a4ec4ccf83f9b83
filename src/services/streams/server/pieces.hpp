// SPDX-License-Identifier: BSD-3-Clause
// Data in the log: in pieces, as long ones do not fit a record.
#pragma once

#include <nessie/result.hpp>
#include <service/log/log.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace streams {

using nessie::Result;
using nessie::service::LogRange;

/// Of records in the log. Appended, never numbered anew.
enum class LogKind : std::uint16_t { kData = 1, kStream = 2, kWrite = 3, kReaders = 4, kSeat = 5 };

/// A part of a chunk's data, as it is in the log.
struct LoggedPiece {
  LogRange at;
  std::uint64_t bytes = 0;
};

/// Bytes that can be read for as long as this lives.
struct HeldBytes {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> keep;
  std::function<void()> release_pages = {};  ///< of a client's memory: they do not count as this process's any more
};

/// Appends data, in pieces that the log can take, and waits until they are written. Nothing of them stays if that
/// fails.
Result<std::vector<LoggedPiece>> write_pieces(nessie::service::Log &log, std::span<const std::byte> bytes);
/// Reads [first, first + size_bytes) of them, checked. kBadMessage, kIo: they are damaged.
Result<HeldBytes> read_pieces(nessie::service::Log &log, const std::vector<LoggedPiece> &pieces, std::uint64_t first,
                              std::uint64_t size_bytes);

}  // namespace streams

// SPDX-License-Identifier: BSD-3-Clause
// What a streams server keeps in its log: data that memory has no room for, and, of streams whose steps are logged, all
// that a server that is started anew has to know. The log's own bytes: src/service/log.
#pragma once

#include <services/streams/server/store.hpp>
#include <streams.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace streams {

/// Of records in the log. Appended, never numbered anew.
enum class LogKind : std::uint16_t { kData = 1, kStream = 2, kWrite = 3, kSteps = 4, kReaders = 5 };

/// Appends data, in pieces that the log can take, and waits until they are written. kIo, with ENOSPC as the cause: the
/// log is full; nothing of them stays.
Result<std::vector<LoggedPiece>> write_pieces(nessie::service::Log &log, std::span<const std::byte> bytes);
/// Reads [first, first + size_bytes) of them, checked. kBadMessage, kIo: they are damaged.
Result<HeldBytes> read_pieces(nssi::Runtime &runtime, nessie::service::Log &log, const std::vector<LoggedPiece> &pieces,
                              std::uint64_t first, std::uint64_t size_bytes);

}  // namespace streams

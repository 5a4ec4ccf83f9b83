// SPDX-License-Identifier: BSD-3-Clause
#include <services/streams/server/pieces.hpp>

#include <base/crc32c.hpp>

#include <algorithm>
#include <utility>

namespace streams {

using nessie::Error;
using nessie::service::Log;

Result<std::vector<LoggedPiece>> write_pieces(Log &log, std::span<const std::byte> bytes) {
  std::vector<LoggedPiece> pieces;
  const auto fail = [&](const Error &error) {
    for (const auto &piece : pieces) log.release(piece.at);
    return error;
  };
  while (!bytes.empty()) {
    auto bulk = log.take_bulk();
    if (!bulk.ok()) return fail(bulk.error());
    const auto part = bytes.first(std::min(bytes.size(), log.most_bulk_bytes()));
    const auto checksum = nessie::copy_crc32c(bulk->data(), part.data(), part.size());
    auto at = log.append(static_cast<std::uint16_t>(LogKind::kData), {}, *std::move(bulk), part.size(), checksum);
    if (!at.ok()) return fail(at.error());
    pieces.push_back({*at, part.size()});
    bytes = bytes.subspan(part.size());
    log.begin_writing();
  }
  if (!pieces.empty())
    if (auto status = log.await_written(pieces.back().at.end); !status.ok()) return fail(status.error());
  return pieces;
}

Result<HeldBytes> read_pieces(Log &log, const std::vector<LoggedPiece> &pieces, std::uint64_t first,
                              std::uint64_t size_bytes) {
  std::uint64_t begin = 0, total = 0;  // of the pieces that are needed
  std::vector<LoggedPiece> needed;
  std::uint64_t at = 0;
  for (const auto &piece : pieces) {
    if (at < first + size_bytes && at + piece.bytes > first) {
      if (needed.empty()) begin = at;
      needed.push_back(piece);
      total += piece.bytes;
    }
    at += piece.bytes;
  }
  auto memory = std::make_shared<std::vector<std::byte>>(total);
  std::uint64_t into = 0;
  for (const auto &piece : needed) {
    if (auto status = log.read(piece.at, std::span(*memory).subspan(into, piece.bytes)); !status.ok())
      return status.error();
    into += piece.bytes;
  }
  const auto bytes = std::span<const std::byte>(*memory).subspan(first - begin, size_bytes);
  return HeldBytes{bytes, std::move(memory)};
}

}  // namespace streams

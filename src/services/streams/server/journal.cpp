// SPDX-License-Identifier: BSD-3-Clause
#include <services/streams/server/journal.hpp>

#include <xdr/codec.hpp>

#include <algorithm>
#include <cstring>
#include <filesystem>

namespace streams {

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
    std::memcpy(bulk->data(), part.data(), part.size());
    auto at = log.append(static_cast<std::uint16_t>(LogKind::kData), {}, *std::move(bulk), part.size());
    if (!at.ok()) return fail(at.error());
    pieces.push_back({*at, part.size()});
    bytes = bytes.subspan(part.size());
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

// --- records ----------------------------------------------------------------------------------------------------------

Result<std::unique_ptr<Journal>> Journal::open(nssi::Runtime &runtime, Budget &budget, const std::string &folder) {
  std::error_code ignored;  // open_disk_store() tells
  std::filesystem::create_directories(std::filesystem::path(folder).parent_path(), ignored);
  auto store = nessie::service::open_disk_store(runtime, {.directory = folder});
  if (!store.ok()) return store.error();
  auto log = Log::open(runtime, budget, *std::move(store), {.name = "streams.log"});
  if (!log.ok()) return log.error();
  return std::unique_ptr<Journal>(new Journal(*std::move(log)));
}

template <class Record> Result<LogRange> Journal::append(LogKind kind, const Record &record) {
  const auto bytes = xdr::encode(record);
  const std::span<const std::byte> data[] = {bytes};
  return log_->append(static_cast<std::uint16_t>(kind), {}, data);
}

void Journal::replace(LogRange &latest, const LogRange &with) {
  if (latest.size() > 0) log_->release(latest);
  latest = with;
}

Result<LogRange> Journal::note(const LoggedWrite &write) { return append(LogKind::kWrite, write); }

Result<LogRange> Journal::note(const LoggedStream &stream) {
  auto at = append(LogKind::kStream, stream);
  if (at.ok()) replace(streams_[stream.stream], *at);
  return at;
}

Status Journal::note(const LoggedReaders &readers) {
  auto at = append(LogKind::kReaders, readers);
  if (!at.ok()) return at.error();
  replace(readers_[{readers.stream, readers.subscription}], *at);
  return {};
}

void Journal::forget(Key stream) {
  if (auto known = streams_.extract(stream); !known.empty()) log_->release(known.mapped());
  for (auto at = readers_.begin(); at != readers_.end();) {
    if (at->first.first != stream) {
      ++at;
      continue;
    }
    log_->release(at->second);
    at = readers_.erase(at);
  }
}

namespace {

template <class T> bool decode(std::span<const std::byte> bytes, T &into) {
  auto decoded = xdr::decode<T>(bytes);
  if (decoded.ok()) into = *std::move(decoded);
  return decoded.ok();
}

}  // namespace

Result<Recovered> Journal::recover() {
  Recovered found;
  std::map<nessie::service::Lsn, LogRange> unclaimed;
  const auto take = [&](const nessie::service::LogRecord &record) -> Status {
    LoggedStream stream;
    LoggedReaders readers;
    Recovered::Write write{record.at, {}};
    const auto kind = static_cast<LogKind>(record.kind);
    if (kind == LogKind::kData) {
      unclaimed.emplace(record.at.begin, record.at);
    } else if (kind == LogKind::kStream && decode(record.data, stream)) {
      replace(streams_[stream.stream], record.at);
      found.streams[stream.stream] = std::move(stream);
    } else if (kind == LogKind::kReaders && decode(record.data, readers)) {
      replace(readers_[{readers.stream, readers.subscription}], record.at);
      found.readers[{readers.stream, readers.subscription}] = readers;
    } else if (kind == LogKind::kWrite && decode(record.data, write.what)) {
      found.writes.push_back(std::move(write));
    } else {
      found.damage.push_back("a record of the log is of another version, or damaged");
      log_->release(record.at);
    }
    return {};
  };
  const auto damaged = [&](const nessie::service::LogDamage &damage) { found.damage.push_back(damage.what); };
  if (auto status = log_->replay(0, {take, damaged, true}); !status.ok()) return status.error();
  for (const auto &write : found.writes)
    for (const auto &chunk : write.what.chunks)
      for (const auto &part : chunk.parts) unclaimed.erase(part.begin);
  for (const auto &[begin, range] : unclaimed) log_->release(range);
  return found;
}

}  // namespace streams

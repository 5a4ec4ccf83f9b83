// SPDX-License-Identifier: BSD-3-Clause
#include <services/streams/server/journal.hpp>

#include <xdr/codec.hpp>

#include <algorithm>
#include <cstring>
#include <filesystem>

namespace streams {

using nessie::service::Log;

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

Result<LogRange> Journal::note(const LoggedReaders &readers) {
  auto at = append(LogKind::kReaders, readers);
  if (at.ok()) replace(readers_[{readers.stream, readers.subscription}], *at);
  return at;
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

// SPDX-License-Identifier: BSD-3-Clause
#include <services/streams/server/journal.hpp>

#include <services/streams/geometry.hpp>

#include <xdr/codec.hpp>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <tuple>
#include <utility>

namespace streams {

using nessie::service::Log;

namespace {

constexpr std::uint64_t kMostSteps = std::uint64_t{1} << 60;

}  // namespace

Result<std::unique_ptr<Journal>> Journal::open(nssi::Runtime &runtime, Budget &budget, const std::string &folder) {
  std::error_code ignored;  // open_disk_store() tells
  std::filesystem::create_directories(std::filesystem::path(folder).parent_path(), ignored);
  auto store = nessie::service::open_disk_store(runtime, {.directory = folder});
  if (!store.ok()) return store.error();
  auto log = Log::open(runtime, budget, *std::move(store), {.name = "streams.log", .waits_for_room = true});
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
  if (at.ok()) replace_stream(stream.stream, *at);
  return at;
}

void Journal::replace_stream(Key stream, const LogRange &with) {
  replace(streams_[stream], with);
  forget_seats(stream);
}

Result<LogRange> Journal::note(const LoggedSeat &seat) {
  auto at = append(LogKind::kSeat, seat);
  if (at.ok()) seats_[seat.stream].push_back(*at);
  return at;
}

void Journal::forget_seats(Key stream) {
  for (const auto &at : seats_[stream]) log_->release(at);
  seats_.erase(stream);
}

Result<LogRange> Journal::note(const LoggedReaders &readers) {
  auto at = append(LogKind::kReaders, readers);
  if (at.ok()) replace(readers_[{readers.stream, readers.subscription}], *at);
  return at;
}

void Journal::forget(Key stream) {
  if (auto known = streams_.extract(stream); !known.empty()) log_->release(known.mapped());
  forget_seats(stream);
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

bool is_sound(const LoggedStream &stream) {
  return check_name("stream", stream.name).ok() && stream.writers.size() <= kMostRanks &&
         stream.complete < kMostSteps &&
         std::ranges::all_of(stream.variables, [](const auto &each) { return check(each).ok(); }) &&
         std::ranges::all_of(stream.attributes, [](const auto &each) { return check(each).ok(); });
}

}  // namespace

/// Of writers of an earlier group it does not count.
void Journal::take_seat(const LoggedSeat &seat, const LogRange &at, Recovered &found) {
  const auto known = found.streams.find(seat.stream);
  const bool counts = known != found.streams.end() && !known->second.groups.empty() &&
                      known->second.groups.back().group == seat.group && seat.rank < known->second.writers.size();
  if (!counts) return log_->release(at);
  known->second.writers[seat.rank] = seat.writer;
  seats_[seat.stream].push_back(at);
}

Result<Recovered> Journal::recover() {
  Recovered found;
  struct Data {
    LogRange at;
    std::uint64_t bytes = 0;
    bool is_claimed = false;
  };
  std::map<Lsn, Data> data;
  std::map<std::tuple<Key, Key, std::uint64_t>, std::size_t> places;  // of a stream's writer's step among the writes
  const auto take = [&](const nessie::service::LogRecord &record) -> Status {
    LoggedStream stream;
    LoggedSeat seat;
    LoggedReaders readers;
    Recovered::Write write{record.at, {}};
    const auto kind = static_cast<LogKind>(record.kind);
    if (kind == LogKind::kData) {
      data.emplace(record.at.begin, Data{record.at, record.data_bytes});
    } else if (kind == LogKind::kStream && decode(record.data, stream) && is_sound(stream)) {
      replace_stream(stream.stream, record.at);
      found.streams[stream.stream] = std::move(stream);
    } else if (kind == LogKind::kSeat && decode(record.data, seat)) {
      take_seat(seat, record.at, found);
    } else if (kind == LogKind::kReaders && decode(record.data, readers) && readers.size <= kMostRanks) {
      replace(readers_[{readers.stream, readers.subscription}], record.at);
      found.readers[{readers.stream, readers.subscription}] = readers;
    } else if (kind == LogKind::kWrite && decode(record.data, write.what)) {
      const auto &what = write.what;
      const auto [place, is_new] = places.try_emplace({what.stream, what.writer, what.step}, found.writes.size());
      if (is_new) {
        found.writes.push_back(std::move(write));
      } else {  // the disk was full when it was put first
        log_->release(found.writes[place->second].at);
        found.writes[place->second] = std::move(write);
      }
    } else {
      found.damage.push_back("a record of the log is of another version, or damaged");
      log_->release(record.at);
    }
    return {};
  };
  const auto damaged = [&](const nessie::service::LogDamage &damage) { found.damage.push_back(damage.what); };
  if (auto status = log_->replay(0, {take, damaged, true}); !status.ok()) return status.error();
  for (auto &write : found.writes)
    for (auto &chunk : write.what.chunks) {
      std::vector<Data *> claimed;
      const bool is_there = std::ranges::all_of(chunk.parts, [&](const LoggedPart &part) {
        const auto at = data.find(part.begin);
        if (at == data.end() || at->second.at.end != part.end || at->second.bytes != part.bytes) return false;
        if (std::exchange(at->second.is_claimed, true)) return false;
        claimed.push_back(&at->second);
        return true;
      });
      if (is_there) continue;
      chunk.parts.clear();  // nobody needed them; or restore() tells
      for (auto *each : claimed) each->is_claimed = false;
    }
  for (const auto &[begin, each] : data)
    if (!each.is_claimed) log_->release(each.at);
  return found;
}

}  // namespace streams

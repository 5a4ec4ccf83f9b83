// SPDX-License-Identifier: BSD-3-Clause
// What a streams server keeps in its log: data that memory has no room for, and, of streams whose steps are logged, all
// that a server that is started anew has to know. The log's own bytes: src/service/log.
#pragma once

#include <services/streams/server/store.hpp>
#include <streams.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace streams {

using nessie::service::Lsn;

/// What a log has of those who were before.
struct Recovered {
  std::map<Key, LoggedStream> streams;
  struct Write {
    LogRange at;
    LoggedWrite what;
  };
  std::vector<Write> writes;  ///< in their order; of those of one writer's step only the last
  std::map<std::pair<Key, std::string>, LoggedReaders> readers;
  std::vector<std::string> damage;  ///< for people
};

/// Within fibers of the thread that drives.
class Journal {
 public:
  /// Opens the log in `folder`, and finds what is there. Errors as those of the log.
  static Result<std::unique_ptr<Journal>> open(nssi::Runtime &runtime, Budget &budget, const std::string &folder);
  nessie::service::Log &log() { return *log_; }
  /// Once, after open(). Data that no write has are released.
  Result<Recovered> recover();

  Result<LogRange> note(const LoggedWrite &write);
  /// Returns when it outlives a power failure.
  Status sync(Lsn until) { return log_->await_synced(until); }
  /// … until it outlives this process.
  Status await_written(Lsn until) { return log_->await_written(until); }
  /// In the place of what was noted before of it, and of its seats.
  Result<LogRange> note(const LoggedStream &stream);
  Result<LogRange> note(const LoggedSeat &seat);
  Result<LogRange> note(const LoggedReaders &readers);
  void forget(Key stream);
  Status flush() { return log_->flush(); }

 private:
  explicit Journal(std::unique_ptr<nessie::service::Log> log) : log_(std::move(log)) {}
  template <class Record> Result<LogRange> append(LogKind kind, const Record &record);
  void replace(LogRange &latest, const LogRange &with);
  void replace_stream(Key stream, const LogRange &with);
  void forget_seats(Key stream);
  void take_seat(const LoggedSeat &seat, const LogRange &at, Recovered &found);

  const std::unique_ptr<nessie::service::Log> log_;
  std::map<Key, LogRange> streams_;
  std::map<Key, std::vector<LogRange>> seats_;  ///< since then
  std::map<std::pair<Key, std::string>, LogRange> readers_;
};

}  // namespace streams

// SPDX-License-Identifier: BSD-3-Clause
// What a staging server has acknowledged of files that are to outlive it, in a log (src/service/log): so that the one
// that is started after it goes on where it was. Progress thread.
#pragma once

#include <service/log/log.hpp>
#include <services/staging/server/left.hpp>

#include <staging.hpp>
#include <xdr/codec.hpp>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>

namespace staging {

using nessie::service::Log;
using nessie::service::LogRange;

class Journal {
 public:
  /// A journal in `folder`, which is made; what somebody has left there stays, until it is released. Errors as
  /// open_disk_store().
  static nessie::Result<std::unique_ptr<Journal>> open(nssi::Runtime &runtime, nessie::Budget &budget,
                                                       const std::string &folder);
  /// The same, in a store that is no folder's.
  static nessie::Result<std::unique_ptr<Journal>> open(nssi::Runtime &runtime, nessie::Budget &budget,
                                                       std::unique_ptr<nessie::service::LogStore> store);
  /// Whether a server has left one in `folder`.
  static bool is_in(const std::string &folder);

  // --- what somebody has left ---------------------------------------------------------------------------------------
  nessie::Result<Left> look();
  struct Visitor {
    std::function<nessie::Status(const LoggedWrite &, std::span<const std::byte> data)> on_write;
    std::function<void(const nessie::service::LogDamage &)> on_damage;
  };
  /// All writes to files that look() found, in their order, but those that are in the files for certain.
  nessie::Status replay(const Left &left, const Visitor &visitor);
  /// The writes of one file that has been noted here, as far as they are needed.
  nessie::Status replay(FileToken file, const Visitor &visitor);

  // --- what is to be kept. In the log on return, and on its way; see await_written(). Errors as Log::append(). -------
  /// A file as it is when `look` is called, which is called again if something else is noted meanwhile.
  nessie::Status note_file(FileToken token, const std::function<LoggedFile()> &look);
  nessie::Status note(const LoggedClient &client) {
    noted_clients_[client.client] = end();
    return append(Logged::kClient, client);
  }
  nessie::Status note(const LoggedDefinition &definition) { return append(Logged::kDefinition, definition); }
  nessie::Status note(const LoggedDefined &defined) { return append(Logged::kDefined, defined); }
  nessie::Status note_filled(FileToken token) { return append(Logged::kFill, token); }
  nessie::Status note(const LoggedClose &close) { return append(Logged::kClose, close); }
  nessie::Status note(const LoggedWrite &write, std::span<const std::byte> data);
  /// The same of data that were brought into the log's own memory. `sum`: sum_of() them.
  nessie::Status note(const LoggedWrite &write, Log::Bulk data, std::uint64_t size_bytes, std::uint32_t sum);
  /// Suspends the fiber while there is none; nothing, if the log has failed.
  nessie::Result<Log::Bulk> take_bulk() { return log_->take_bulk(); }
  /// How much has been noted since the file was.
  std::uint64_t bytes_since(FileToken token) const;
  /// Where the next record will be.
  Lsn end() const { return log_->end(); }
  /// What was noted of the file before `since`, where note_file() was begun again, is in it, on the disk; and what was
  /// noted since has been written, as far as it tells of the file.
  void need_since(FileToken token, Lsn since);
  /// All of the file is where it belongs: what is here of it is not needed any more. Suspends the fiber until that has
  /// been written.
  nessie::Status note_gone(FileToken token);

  /// Suspends the fiber until all that has been noted outlives this process; a power failure.
  nessie::Status await_written() { return log_->await_written(log_->end()); }
  nessie::Status await_synced() { return log_->await_synced(log_->end()); }

  /// Whether the client was noted since the file was: what was noted earlier may be released.
  bool has_noted(std::uint64_t client, FileToken token) const;
  /// Whether the client was ever noted here, or by somebody who has left this.
  bool knows(std::uint64_t client) const { return noted_clients_.contains(client); }
  bool forgets(std::uint64_t client) { return noted_clients_.erase(client) > 0; }
  /// Suspends the fiber until nothing is on its way.
  nessie::Status flush() { return log_->flush(); }
  /// Whether it holds nothing that is needed.
  bool is_empty() const { return needed_since_.empty(); }
  /// Whether it could note all that it was to.
  bool is_whole() const { return log_->status().ok(); }
  /// Removes it, with its folder. Nothing is on its way.
  static void remove(std::unique_ptr<Journal> journal);

 private:
  explicit Journal(std::unique_ptr<Log> log) : log_(std::move(log)) {}
  template <class T> nessie::Status append(Logged kind, const T &what, std::span<const std::byte> data = {});
  nessie::Status replay(Lsn from, const std::function<bool(FileToken, Lsn)> &is_wanted, const Visitor &visitor);
  void release();
  void note_gone_again();

  std::unique_ptr<Log> log_;
  std::string folder_;  ///< empty: it is in none
  std::uint64_t notes_ = 0;
  std::map<std::uint64_t, Lsn> noted_clients_;  ///< where, the last time
  std::map<FileToken, Lsn> needed_since_;
  std::deque<FileToken> gone_;            ///< the last ones
  Lsn gone_since_ = 0, gone_before_ = 0;  ///< where they were noted again, the last time and the one before
};

template <class T> nessie::Status Journal::append(Logged kind, const T &what, std::span<const std::byte> data) {
  const auto head = xdr::encode(what);
  auto at = log_->append(static_cast<std::uint16_t>(kind), head, {&data, 1});
  ++notes_;
  return at.ok() ? nessie::Status() : at.error();
}

}  // namespace staging

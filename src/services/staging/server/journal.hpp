// SPDX-License-Identifier: BSD-3-Clause
// What a staging server has acknowledged of files that are to outlive it, in a log (src/service/log): so that the one
// that is started after it goes on where it was. Progress thread.
#pragma once

#include <service/log/log.hpp>
#include <service/wait_queue.hpp>
#include <services/staging/server/left.hpp>

#include <staging.hpp>
#include <xdr/codec.hpp>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace staging {

using nessie::service::Log;
using nessie::service::LogRange;

/// How much a journal is to take: from where its oldest record is that is needed.
struct JournalLimits {
  std::uint64_t crowded_bytes = 0;  ///< from so much on, what its files have is to be put into them
  std::uint64_t most_bytes = 0;     ///< with what is about to be written; 0: as much as its store has
};

class Journal {
 public:
  /// A journal in a folder, which is made; what somebody has left there stays, until it is released. Errors as
  /// open_disk_store().
  static nessie::Result<std::unique_ptr<Journal>> open(nssi::Runtime &runtime, nessie::Budget &budget,
                                                       const nessie::service::DiskStoreOptions &options,
                                                       const JournalLimits &limits);
  /// The same, in a store that is no folder's.
  static nessie::Result<std::unique_ptr<Journal>> open(nssi::Runtime &runtime, nessie::Budget &budget,
                                                       std::unique_ptr<nessie::service::LogStore> store,
                                                       const JournalLimits &limits);
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
  /// The same of a client.
  nessie::Status note_client(std::uint64_t client, const std::function<LoggedClient()> &look);
  nessie::Status note(const LoggedDefinition &definition) { return append(Logged::kDefinition, definition); }
  nessie::Status note(const LoggedDefined &defined) { return append(Logged::kDefined, defined); }
  /// What was noted of the file before is in it, on the disk.
  nessie::Status note_filled(FileToken token) {
    filled_[token] = end();
    return append(Logged::kFill, token);
  }
  nessie::Status note(const LoggedClose &close) { return append(Logged::kClose, close); }
  nessie::Status note(const LoggedWrite &write, std::span<const std::byte> data);
  /// The same of data that were brought into the log's own memory. `sum`: sum_of() them.
  nessie::Status note(const LoggedWrite &write, Log::Bulk data, std::uint64_t size_bytes, std::uint32_t sum);
  /// Suspends the fiber while there is none; nothing, if the log has failed.
  nessie::Result<Log::Bulk> take_bulk() { return log_->take_bulk(); }
  /// Where the next record will be.
  Lsn end() const { return log_->end(); }
  /// What was noted of the file before `since`, where note_file() was begun again, is in it, on the disk; and what was
  /// noted since has been written, as far as it tells of the file.
  void need_since(FileToken token, Lsn since);
  /// All of the file is where it belongs: what is here of it is not needed any more. Suspends the fiber until that has
  /// been written.
  nessie::Status note_gone(FileToken token);
  /// The same, as another journal has it. Here it is not gone either.
  nessie::Status note_moved(FileToken token);

  // --- its room -----------------------------------------------------------------------------------------------------
  /// For a write that is about to be noted; to be dropped when that is done.
  class Room;
  /// Nothing: there is none now.
  std::optional<Room> take_room(std::uint64_t size_bytes);
  bool is_crowded() const { return taken_bytes() > limits_.crowded_bytes; }
  /// The files whose records take much of the room, those with the oldest first.
  std::vector<FileToken> crowding() const;
  /// Before this, nothing is needed.
  Lsn needed() const;
  /// Gives back what is not needed. May suspend the fiber.
  void release();
  /// Suspends the fiber until something has been given back. kTimedOut; kCancelled: the runtime is being destroyed.
  nessie::Status await_release(nessie::Deadline deadline) { return released_.wait(deadline); }
  bool is_being_shortened = false;  ///< by its server
  bool cannot_be_shortened = false;

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
  /// Whether it holds something of the file that is needed, or says that it is gone.
  bool has(FileToken token) const;
  /// Whether it holds nothing that is needed.
  bool is_empty() const { return needed_since_.empty(); }
  /// Whether it could note all that it was to.
  bool is_whole() const { return log_->status().ok(); }
  /// Removes it, with its folder. Nothing is on its way.
  static void remove(std::unique_ptr<Journal> journal);

 private:
  Journal(nssi::Runtime &runtime, std::unique_ptr<Log> log, const JournalLimits &limits)
      : log_(std::move(log)), limits_(limits), released_(runtime) {}
  template <class T> nessie::Status append(Logged kind, const T &what, std::span<const std::byte> data = {});
  template <class Look> nessie::Status append_latest(Logged kind, const Look &look);
  static constexpr std::size_t kMostHead = 32 << 10;  ///< of one record
  nessie::Status append_parts(Logged kind, std::span<const std::byte> head);
  nessie::Status replay(Lsn from, const std::function<bool(FileToken, Lsn)> &is_wanted, const Visitor &visitor);
  nessie::Status note_not_needed(Logged kind, FileToken token);
  void note_gone_again();
  bool is_gone(FileToken token) const;
  std::uint64_t taken_bytes() const;

  std::unique_ptr<Log> log_;
  const JournalLimits limits_;
  nessie::service::WaitQueue released_;
  std::uint64_t about_to_be_written_ = 0;
  std::string folder_;  ///< empty: it is in none
  std::uint64_t notes_ = 0;
  std::map<std::uint64_t, Lsn> noted_clients_;  ///< where, the last time
  std::map<FileToken, Lsn> needed_since_, filled_;
  std::deque<FileToken> gone_;  ///< the last ones
  Lsn gone_since_ = 0;          ///< where they were noted again
};

/// Moves.
class Journal::Room {
 public:
  Room(Journal &journal, std::uint64_t size_bytes) : journal_(&journal), size_bytes_(size_bytes) {
    journal.about_to_be_written_ += size_bytes;
  }
  Room(Room &&other) noexcept : journal_(other.journal_), size_bytes_(std::exchange(other.size_bytes_, 0)) {}
  ~Room() { journal_->about_to_be_written_ -= size_bytes_; }

 private:
  Journal *journal_;
  std::uint64_t size_bytes_;
};

template <class T> nessie::Status Journal::append(Logged kind, const T &what, std::span<const std::byte> data) {
  const auto head = xdr::encode(what);
  if (head.size() > kMostHead && data.empty()) return append_parts(kind, head);
  auto at = log_->append(static_cast<std::uint16_t>(kind), head, {&data, 1});
  ++notes_;
  return at.ok() ? nessie::Status() : at.error();
}

/// What something is when its record comes behind the others, which may take a while.
template <class Look> nessie::Status Journal::append_latest(Logged kind, const Look &look) {
  for (;;) {
    const auto before = notes_;
    auto status = append(kind, look());
    if (!status.ok() || notes_ == before + 1) return status;
  }
}

}  // namespace staging

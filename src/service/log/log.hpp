// SPDX-License-Identifier: BSD-3-Clause
// A log: records one after the other, each with a checksum, on a disk or wherever its store keeps them. What a service
// has acknowledged and not yet put where it belongs is in its log, and found there by whoever goes on after it.
// README.md has what it promises, format.hpp its bytes.
//
// Design notes. Records are gathered in blocks, and a block is the unit of writing: as soon as nothing is on its way to
// the store, or the block is full, it goes. So a single record waits for nobody, and many share a write, and a sync. A
// bulk record is a block of its own, whose memory is filled by whoever brings the data, and is not copied.
#pragma once

#include <base/budget.hpp>
#include <nssi/nssi.hpp>
#include <service/log/store.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace nessie::service {

/// As replay() finds it. What it points to is borrowed for the time of the call.
struct LogRecord {
  std::uint16_t kind = 0;
  LogRange at;
  std::span<const std::byte> head;
  std::span<const std::byte> data;  ///< empty when it was skimmed
  std::uint64_t data_bytes = 0;     ///< also when it was skimmed
};

/// What was synced once and cannot be read any more.
struct LogDamage {
  LogRange at;
  std::string what;  ///< "the checksum of a record at byte 8192 of /x/log.3 is wrong"
};

struct LogOptions {
  std::string name = "log";                        ///< of its account of memory
  std::size_t block_bytes = std::size_t{2} << 20;  ///< of memory and of the store, at most
  std::size_t most_blocks = 8;                     ///< that are being filled or written
  /// How long the store may take for a write, or a sync, before it is held for gone.
  std::chrono::milliseconds patience = std::chrono::seconds(120);
  /// A disk that is full does not end the log: see Log::room().
  bool waits_for_room = false;
};

/// All of it within fibers of the thread that drives.
class Log {
 public:
  /// Finds the end of what is in the store, and cuts a torn tail off. What is left outlives a power failure. Errors as
  /// the store's, and kTimedOut: it took longer than the log's patience.
  static Result<std::unique_ptr<Log>> open(nssi::Runtime &runtime, Budget &budget, std::unique_ptr<LogStore> store,
                                           LogOptions options = {});
  /// Nothing may be on its way: see flush().
  ~Log();
  Log(const Log &) = delete;

  // --- reading ------------------------------------------------------------------------------------------------------
  struct Visitor {
    /// An error ends the replay, and is its result.
    std::function<Status(const LogRecord &)> on_record;
    std::function<void(const LogDamage &)> on_damage = {};
    /// Of bulk records only the heads are read.
    bool skims = false;
  };
  /// Tells of all records from `from` on that nobody has released, in their order; of none that were appended
  /// meanwhile.
  Status replay(Lsn from, const Visitor &visitor);
  /// The same of what is in a store now, which is not opened: nothing is changed there, whoever else has it.
  static Status look(nssi::Runtime &runtime, std::shared_ptr<LogStore> store, const Visitor &visitor);
  /// The data of one record, whose size is known, checked: `at` as append() or replay() said it. kBadMessage: they are
  /// not what was appended.
  Status read(const LogRange &at, std::span<std::byte> data);

  // --- writing ------------------------------------------------------------------------------------------------------
  /// What a record's head and data may have together.
  std::size_t most_record_bytes() const;
  /// Puts a record behind the others: copies it; its data may be in parts. Suspends the fiber while all blocks are on
  /// their way. kTooLarge. The store's error, or kTimedOut, as it took longer than the log's patience, then and ever
  /// after: the log has ended, and what was not written is lost.
  Result<LogRange> append(std::uint16_t kind, std::span<const std::byte> head,
                          std::span<const std::span<const std::byte>> data);
  /// Memory of a bulk record.
  class Bulk;
  /// The most that the data, and the head, of a bulk record have.
  std::size_t most_bulk_bytes() const;
  static constexpr std::size_t kMostBulkHead = 2048;
  /// Suspends the fiber while there is none.
  Result<Bulk> take_bulk();
  /// Puts a record behind the others that has the first `data_bytes` of `bulk` as its data. `checksum`: their CRC32C,
  /// if whoever brought them knows it.
  Result<LogRange> append(std::uint16_t kind, std::span<const std::byte> head, Bulk bulk, std::size_t data_bytes,
                          std::optional<std::uint32_t> checksum = std::nullopt);

  /// Suspends the fiber for a moment, in which what was appended begins to be written: for who does much between two
  /// records, and would keep the thread.
  void begin_writing();
  /// Suspends the fiber until all that was appended before `until` outlives this process. The store's error.
  Status await_written(Lsn until);
  /// … until it outlives a power failure. Of several who wait, one sync serves all.
  Status await_synced(Lsn until);
  /// Suspends the fiber until nothing is on its way.
  Status flush();

  /// Where the next record will begin, or later.
  Lsn end() const;
  /// Nobody needs what lies there.
  void release(const LogRange &range);
  /// What the store takes now.
  std::uint64_t held_bytes() const;
  /// Space comes back by so much.
  std::uint64_t segment_bytes() const;
  /// Why it takes nothing more; ok: it does.
  Status status() const;
  /// Of a log that waits for room: the store's error, while there is none. What was appended, and is not written, is
  /// tried again and again then, and goes when there is room. Meanwhile whoever waits for it, or for a block to append
  /// in, is told this error: what he has appended may still be written. flush() gives it up, and ends the log.
  Status room() const;

  struct Impl;  ///< for its own sources

 private:
  explicit Log(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

/// Moves. Given back when dropped.
class Log::Bulk {
 public:
  Bulk(Bulk &&) noexcept;
  Bulk &operator=(Bulk &&) noexcept;
  ~Bulk();
  /// most_bulk_bytes() of it, page-aligned.
  std::byte *data() const;

  struct Block;  ///< for the log's own sources

 private:
  friend class Log;
  Bulk(Log::Impl &log, std::unique_ptr<Block> block);
  Log::Impl *log_ = nullptr;
  std::unique_ptr<Block> block_;
};

}  // namespace nessie::service

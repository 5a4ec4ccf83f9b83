// SPDX-License-Identifier: BSD-3-Clause
// What a log has: for its own sources.
#pragma once

#include <service/log/blocks.hpp>
#include <service/log/format.hpp>
#include <service/log/log.hpp>
#include <service/log/recovery.hpp>
#include <service/wait_queue.hpp>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

namespace nessie::service {

/// Shared with the fibers that write.
struct Log::Impl : std::enable_shared_from_this<Log::Impl> {
  using Block = LogBlocks::Block;
  Impl(nssi::Runtime &its_runtime, Budget &budget, std::shared_ptr<LogStore> its_store, const LogOptions &options,
       RecoveredLog recovered);

  Result<std::unique_ptr<Block>> take_block(bool is_bulk);
  void give_back(std::unique_ptr<Block> block);
  Lsn place_for(std::size_t size_bytes) const;
  void begin(Block &block, std::size_t least_bytes);
  LogRange put(log_format::RecordHeader header, std::span<const std::byte> head,
               std::span<const std::span<const std::byte>> data);
  void seal(std::unique_ptr<Block> block);
  void note(const LogRange &record);

  void wake_writer();
  void write_blocks();
  std::unique_ptr<Block> next_to_write();
  Status write(const std::shared_ptr<Block> &block);
  void note_written(Lsn block);
  Status carry_out(const char *what, std::function<Status()> work);
  void end_with(const Status &error);
  /// Where what was written ends: no block before it is missing.
  Lsn end_of_written() const;
  bool is_written(Lsn until) const;
  Status await_written(Lsn until);
  Status await_synced(Lsn until);
  void begin_sync();
  void sync();
  Status flush();
  Lsn end() const { return filling ? filling->lsn + filling->used_bytes : next; }

  void release(const LogRange &range);
  void release_dead();

  Status erase(std::vector<log_format::BlockHeader> cut);
  Status replay(Lsn from, const Visitor &visitor);
  Status read(const LogRange &at, std::span<std::byte> data);

  nssi::Runtime &runtime;
  const std::shared_ptr<LogStore> store;
  const std::uint64_t segment_bytes;
  const std::uint64_t id;
  const std::chrono::milliseconds patience;
  const bool waits_for_room;
  LogBlocks blocks;
  WaitQueue changed;

  Lsn next;    ///< where the next block begins, or behind
  Lsn before;  ///< where the last one ended
  std::unique_ptr<Block> filling;
  std::deque<std::unique_ptr<Block>> sealed;
  /// Where those begin that are sealed, or on their way, or were lost, and where the one before each ended.
  std::map<Lsn, Lsn> unwritten;
  std::size_t writers = 0, under_way = 0;
  std::uint64_t newest_segment = 0;  ///< that a block was written to
  Lsn synced;
  bool is_syncing = false;
  Status status;
  Status room;  ///< the disk is full

  std::map<std::uint64_t, LogSegment> segments;
  std::set<std::uint64_t> dead;  ///< those in which nothing is live
};

}  // namespace nessie::service

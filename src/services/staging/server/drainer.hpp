// SPDX-License-Identifier: BSD-3-Clause
// Moves pages from the cache to the files: chooses the next page, hands it to the I/O thread, keeps the accounts.
// Progress thread, but for what runs in the I/O queue.
#pragma once

#include <services/staging/server/io_queue.hpp>
#include <services/staging/server/open_file.hpp>

#include <memory>
#include <vector>

namespace staging {

/// What a server did, for its report.
struct Statistics {
  std::uint64_t bytes_pulled = 0, bytes_pushed = 0, bytes_drained = 0;
  std::uint64_t writes = 0, reads = 0, files = 0, clients = 0;
  double busy_pull_s = 0, busy_drain_s = 0, first_write_s = 0, last_pull_s = 0, last_drain_s = 0;
};

/// CLOCK_MONOTONIC, in seconds.
double seconds_now();

class Drainer {
 public:
  Drainer(nssi::Runtime &runtime, IoQueue &io, std::uint64_t budget_bytes, Statistics &statistics)
      : runtime_(runtime), io_(io), statistics_(statistics), cache_(budget_bytes), memory_freed_(runtime) {}

  PageCache &cache() { return cache_; }
  /// Has memory for the first pages made resident while the I/O thread has nothing else to do: the kernel takes longer
  /// to find it than the data to be copied there.
  void touch_ahead(std::uint64_t bytes);
  /// No more. Not on the I/O thread while it runs; before the runtime is destroyed.
  void end_touching();
  /// Puts a piece into pages; suspends the fiber while the budget is short. `data` is borrowed.
  void put(CachedVariable &variable, const Piece &piece, const std::byte *data);
  /// Suspends the fiber until what is dirty now of these elements, or of the file, is in the file or has failed. A file
  /// that was hastened is urgent in any case.
  void flush(CachedVariable &variable, Interval within);
  void flush(OpenFile &file, PageState priority);
  /// Makes a closed file's drain urgent that somebody else waits for already, once and for all.
  void hasten(OpenFile &file);
  std::uint64_t pending_bytes() const { return pending_bytes_; }
  std::uint64_t memory_high_bytes() const { return cache_.high_bytes(); }

 private:
  struct Task;
  void touch_next();
  void pump();
  void start(std::unique_ptr<Page> page);
  void finish(Task &task);
  void request(OpenFile &file, PageState priority, const std::shared_ptr<DrainWatch> &watch);
  void flush(const std::function<void(const std::shared_ptr<DrainWatch> &)> &request);

  nssi::Runtime &runtime_;
  IoQueue &io_;
  Statistics &statistics_;
  PageCache cache_;
  WaitQueue memory_freed_;
  std::size_t in_flight_ = 0, starved_ = 0;  ///< pages at the I/O thread; fibers that wait for memory
  std::uint64_t pending_bytes_ = 0;          ///< dirty, of all files
  std::uint64_t bytes_to_touch_ = 0;
};

}  // namespace staging

// SPDX-License-Identifier: BSD-3-Clause
// Where the blocks of a log are kept.
#pragma once

#include <nessie/result.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace nssi {
class Runtime;
}

namespace nessie::service {

/// A position in a log's stream of bytes. It never comes again, whoever goes on with the log.
using Lsn = std::uint64_t;

/// [begin, end).
struct LogRange {
  Lsn begin = 0, end = 0;
  std::uint64_t size() const { return end - begin; }
  bool operator==(const LogRange &) const = default;
};

/// Blocks begin and end at multiples of this, and so does their memory.
inline constexpr std::size_t kLogAlignment = 4096;

/// All of it within fibers of one thread, several at once; what waits suspends its fiber. Errors: kIo, with errno as
/// the cause.
class LogStore {
 public:
  virtual ~LogStore() = default;

  /// What somebody has left here, in ascending order; what lies between is gone. The last one may end later than what
  /// was written.
  virtual std::vector<LogRange> contents() const = 0;
  /// What was written there; less than `into` where the store ends, or nothing was ever written.
  virtual Result<std::size_t> read(Lsn at, std::span<std::byte> into) = 0;

  /// No block crosses a multiple of this.
  virtual std::uint64_t segment_bytes() const = 0;
  /// When it returns, the block outlives this process. A segment's first block is written when the segment itself
  /// outlives a power failure, so that one which is not there was released.
  virtual Status write(Lsn at, std::span<const std::byte> block) = 0;
  /// All before `end` was written, but for what was released.
  virtual void note_written(Lsn end) = 0;
  /// What note_written() of whoever left this was told last, if everything that was written by then is to be found;
  /// 0: that is not known, as after a power failure.
  virtual Lsn written_before() const = 0;
  /// When it returns, all blocks whose write() has returned, or that were there already, outlive a power failure.
  virtual Status sync() = 0;
  /// Nobody will read what lies there. Its space is given back as soon as that is possible.
  virtual void release(const LogRange &range) = 0;
  /// What it takes now.
  virtual std::uint64_t held_bytes() const = 0;
  /// For people: "byte 8192 of /var/tmp/x/log.3".
  virtual std::string where(Lsn at) const = 0;
};

struct DiskStoreOptions {
  std::string directory;  ///< made, with mode 0700, if it is not there
  std::uint64_t segment_bytes = std::uint64_t{64} << 20;
  /// The most that all segments take; 0: as much as there is. write() fails beyond it, with ENOSPC.
  std::uint64_t most_bytes = 0;
  /// It is there, and nothing of it is locked, made, changed or removed: also while another process has it open, which
  /// may use a segment again that is being read. write() and sync() fail.
  bool is_read_only = false;
};

/// Segments of a directory, `log.N`, each preallocated, written past the kernel's cache where the file system can do
/// that; those that nobody needs are used again, or removed. kExists: another process has the log open. kIo, kRefused:
/// the directory cannot be used, or is not this user's alone.
Result<std::unique_ptr<LogStore>> open_disk_store(nssi::Runtime &runtime, DiskStoreOptions options);

}  // namespace nessie::service

// SPDX-License-Identifier: BSD-3-Clause
// Files, for handlers: while one is read or written, the handler's fiber waits and others go on. By io_uring, or, where
// the system does not let us have it, by a few threads.
#pragma once

#include <nssi/nssi.hpp>

#include <cstdint>
#include <memory>
#include <span>

namespace nssi {

struct FileIoOptions {
  /// Operations that the kernel, or a thread, has at once; further ones wait in their order.
  unsigned depth = 64;
  /// False: threads, also where there is io_uring.
  bool may_use_io_uring = true;
  /// Where io_uring is not used.
  unsigned threads = 4;
};

/// How long an operation is waited for, and what becomes of one that has not ended by then: it is withdrawn if it has
/// not begun, and cancelled otherwise, which ends what waits for a pipe, but not what a disk is at.
struct FilePatience {
  Deadline deadline = Deadline::never();
  /// The handler's: nor for longer than somebody waits for its result (Request::check()).
  Request *request = nullptr;
  /// Owns the operation's memory. An operation that cannot be ended is then left behind, and holds it until it is over,
  /// on another thread; without an owner it is waited for, as the memory would be the caller's again. What brings a
  /// file to the disk has no memory, and is always left behind.
  std::shared_ptr<void> owner = nullptr;
};

/// All functions may be called from any thread. Within a fiber of the runtime, on its driver or in a pool, they suspend
/// that fiber only; elsewhere they block the calling thread. All end, besides as they say, with kTimedOut at their
/// deadline, with the error of Request::check(), and with kCancelled while the runtime is being destroyed: a part may
/// have been done, and what was left behind may go on.
class FileIo {
 public:
  /// kInvalidArgument: no depth, or no threads. kNoMemory.
  static Result<std::unique_ptr<FileIo>> open(Runtime &runtime, const FileIoOptions &options = {});
  /// Nobody may wait for an operation. Those that were left behind are waited for.
  ~FileIo();

  /// Reads until `into` is full, or the file ends: how many bytes. kIo, with errno as the cause. kOutOfRange: beyond
  /// 2^63 - 1; nothing was read.
  Result<std::size_t> read(int file, std::span<std::byte> into, std::uint64_t offset,
                           const FilePatience &patience = {});
  /// Writes all of it; it is where other readers of the file see it, as after pwrite(2). kIo, with errno as the cause:
  /// a part of it may have been written. kOutOfRange: beyond 2^63 - 1; nothing was written.
  Status write(int file, std::span<const std::byte> from, std::uint64_t offset, const FilePatience &patience = {});
  /// What was written before is on the disk, as after fdatasync(2). kIo.
  Status sync(int file, const FilePatience &patience = {});
  bool uses_io_uring() const;

  class Backend;

 private:
  FileIo(Runtime &runtime, std::unique_ptr<Backend> backend);
  Result<long> carry_out(const std::shared_ptr<class FileOperation> &operation, const FilePatience &patience);
  Runtime &runtime_;
  std::unique_ptr<Backend> backend_;
};

}  // namespace nssi

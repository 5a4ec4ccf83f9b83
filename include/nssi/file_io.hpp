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

/// All functions may be called from any thread. Within a fiber of the runtime, on its driver or in a pool, they suspend
/// that fiber only; elsewhere they block the calling thread.
class FileIo {
 public:
  /// kInvalidArgument: no depth, or no threads. kNoMemory.
  static Result<std::unique_ptr<FileIo>> open(Runtime &runtime, const FileIoOptions &options = {});
  /// Nothing may be under way.
  ~FileIo();

  /// Reads until `into` is full, or the file ends: how many bytes. kIo, with errno as the cause.
  Result<std::size_t> read(int file, std::span<std::byte> into, std::uint64_t offset);
  /// Writes all of it; it is where other readers of the file see it, as after pwrite(2). kIo, with errno as the cause:
  /// a part of it may have been written.
  Status write(int file, std::span<const std::byte> from, std::uint64_t offset);
  /// What was written before is on the disk, as after fdatasync(2). kIo.
  Status sync(int file);
  bool uses_io_uring() const;

  class Backend;

 private:
  FileIo(Runtime &runtime, std::unique_ptr<Backend> backend);
  Runtime &runtime_;
  std::unique_ptr<Backend> backend_;
};

}  // namespace nssi

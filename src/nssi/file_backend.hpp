// SPDX-License-Identifier: BSD-3-Clause
// What carries file operations out, and tells those who wait.
#pragma once

#include <base/birth.hpp>
#include <nssi/file_io.hpp>

#include <future>
#include <memory>
#include <optional>

namespace nssi {

/// One system call. Lives where its caller waits for it.
class FileOperation {
 public:
  enum class Kind { kRead, kWrite, kSync };
  FileOperation(Runtime &runtime, Kind kind, int file, std::span<std::byte> memory, std::uint64_t offset)
      : kind(kind), file(file), memory(memory), offset(offset) {
    if (runtime.in_fiber())
      event_.emplace(runtime);
    else
      promise_ = std::make_shared<std::promise<void>>();
  }
  /// By whoever carries it out: a count of bytes, or -errno. The operation may be gone when this returns.
  void finish(long result);
  /// The result.
  long await();
  /// As the system calls do it.
  long carry_out() const;

  const Kind kind;
  const int file;
  const std::span<std::byte> memory;
  const std::uint64_t offset;

 private:
  long result_ = 0;
  std::optional<Event> event_;                   ///< of a fiber
  std::shared_ptr<std::promise<void>> promise_;  ///< of a thread
};

class FileIo::Backend {
 public:
  virtual ~Backend() = default;
  const nessie::Birth birth;
  /// finish() is called on another thread, sooner or later.
  virtual void submit(FileOperation &operation) = 0;
  virtual bool is_io_uring() const = 0;
};

/// Null: the system does not let us have io_uring.
std::unique_ptr<FileIo::Backend> make_ring(unsigned depth);
/// Throws std::system_error.
std::unique_ptr<FileIo::Backend> make_file_threads(unsigned threads);

}  // namespace nssi

// SPDX-License-Identifier: BSD-3-Clause
// What carries file operations out, and tells those who wait.
#pragma once

#include <base/birth.hpp>
#include <nssi/file_io.hpp>

#include <atomic>
#include <future>
#include <memory>
#include <optional>

namespace nssi {

/// One system call. Its backend holds it until it is over, however long its caller waits.
class FileOperation {
 public:
  enum class Kind { kRead, kWrite, kSync };
  FileOperation(Runtime &runtime, Kind kind, int file, std::span<std::byte> memory, std::uint64_t offset,
                std::shared_ptr<void> owner)
      : kind(kind), file(file), memory(memory), offset(offset), owner_(std::move(owner)) {
    if (runtime.in_fiber())
      event_.emplace(runtime);
    else
      ended_ = promise_.emplace().get_future();
  }
  /// By whoever carries it out: a count of bytes, or -errno.
  void finish(long result);
  /// ok: it has ended. Otherwise as FilePatience says.
  Status wait(const FilePatience &patience);
  /// Its caller goes on without it, and does not touch it again. False: it has ended, or must be waited for.
  bool leave();
  /// Of one that has ended.
  long result() const { return result_; }
  /// The result, however long that takes.
  long await();
  /// As the system calls do it.
  long carry_out() const;

  const Kind kind;
  const int file;
  const std::span<std::byte> memory;
  const std::uint64_t offset;
  std::shared_ptr<FileOperation> held;  ///< its backend's: itself, while the kernel has it

 private:
  enum class State { kUnderWay, kEnded, kLeft };
  std::atomic<State> state_{State::kUnderWay};
  long result_ = 0;
  const std::shared_ptr<void> owner_;
  std::optional<Event> event_;                 ///< of a fiber
  std::optional<std::promise<void>> promise_;  ///< of a thread
  std::future<void> ended_;
};

class FileIo::Backend {
 public:
  /// Waits for what was left behind.
  virtual ~Backend() = default;
  const nessie::Birth birth{};
  /// finish() is called once, sooner or later, on whichever thread.
  virtual void submit(std::shared_ptr<FileOperation> operation) = 0;
  /// Has it end earlier if that can be: with -ECANCELED, or -EINTR.
  virtual void cancel(const std::shared_ptr<FileOperation> &operation) = 0;
  virtual bool is_io_uring() const = 0;
};

/// Null: the system does not let us have io_uring.
std::unique_ptr<FileIo::Backend> make_ring(unsigned depth);
/// Throws std::system_error.
std::unique_ptr<FileIo::Backend> make_file_threads(unsigned threads);

}  // namespace nssi

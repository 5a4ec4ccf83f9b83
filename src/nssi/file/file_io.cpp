// SPDX-License-Identifier: BSD-3-Clause
#include <nssi/file/backend.hpp>

#include <unistd.h>

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <system_error>
#include <thread>

namespace nssi {

namespace {

/// Of one system call: they take less than 2 GiB.
constexpr std::size_t kMostBytes = std::size_t{1} << 30;
constexpr unsigned kMostDepth = 4096, kMostThreads = 256;

Error failed(const char *what, long result) {
  const int cause = static_cast<int>(-result);
  return {Code::kIo, fmt::format("the file could not be {}: {}", what, std::strerror(cause)), nessie::Scope::kOperation,
          cause};
}

Error timed_out() {
  return {Code::kTimedOut, "the file's operation did not end before the deadline; a part of it may have been done"};
}

/// Whether it may begin.
Status check(const FilePatience &patience) {
  if (patience.deadline.passed()) return timed_out();
  return patience.request != nullptr ? patience.request->check() : Status();
}

/// io_uring takes the largest offset for the file's own, where nobody meant to read or write.
Status check_range(std::size_t size_bytes, std::uint64_t offset) {
  constexpr std::uint64_t kEnd = std::numeric_limits<off_t>::max();
  if (offset <= kEnd && size_bytes <= kEnd - offset) return {};
  return Error{Code::kOutOfRange, fmt::format("{} bytes at {} are beyond what a file can have", size_bytes, offset)};
}

bool was_cancelled(long result) { return result == -ECANCELED || result == -EINTR; }
bool may_be_repeated(long result) { return result == -EINTR || result == -EAGAIN; }

}  // namespace

// --- FileOperation ----------------------------------------------------------------------------------------------------

void FileOperation::finish(long result) {
  result_ = result;
  if (state_.exchange(State::kEnded) == State::kLeft) return;
  if (event_) return event_->set();
  promise_->set_value();
}

Status FileOperation::wait(const FilePatience &patience) {
  const auto *request = patience.request;
  if (event_)
    return request != nullptr ? patience.request->wait(*event_, patience.deadline) : event_->wait(patience.deadline);
  const auto until = request != nullptr ? patience.deadline.earlier(request->deadline()) : patience.deadline;
  if (until.is_never()) return ended_.wait(), Status();
  return ended_.wait_until(until.when()) == std::future_status::ready ? Status() : Status(timed_out());
}

bool FileOperation::leave() {
  if (!memory.empty() && owner_ == nullptr) return false;
  auto before = State::kUnderWay;
  return state_.compare_exchange_strong(before, State::kLeft);
}

/// The kernel has the memory until it says otherwise, also in a runtime that is being destroyed.
long FileOperation::await() {
  if (!event_)
    ended_.wait();
  else
    while (!event_->wait().ok()) std::this_thread::yield();
  return result_;
}

long FileOperation::carry_out() const {
  const auto at = static_cast<off_t>(offset);
  long result = 0;
  switch (kind) {
    case Kind::kRead: result = ::pread(file, memory.data(), memory.size(), at); break;
    case Kind::kWrite: result = ::pwrite(file, memory.data(), memory.size(), at); break;
    case Kind::kSync: result = ::fdatasync(file); break;
  }
  return result < 0 ? -errno : result;
}

// --- FileIo -----------------------------------------------------------------------------------------------------------

FileIo::FileIo(Runtime &runtime, std::unique_ptr<Backend> backend) : runtime_(runtime), backend_(std::move(backend)) {}
FileIo::~FileIo() {
  if (!backend_->birth.was_here()) (void)backend_.release();  // its threads are not here
}
bool FileIo::uses_io_uring() const { return backend_->is_io_uring(); }

Result<std::unique_ptr<FileIo>> FileIo::open(Runtime &runtime, const FileIoOptions &options) {
  if (options.depth == 0 || options.depth > kMostDepth || options.threads == 0 || options.threads > kMostThreads)
    return Error{Code::kInvalidArgument,
                 fmt::format("file I/O takes a depth of 1 to {} and 1 to {} threads", kMostDepth, kMostThreads)};
  try {
    auto backend = options.may_use_io_uring ? make_ring(options.depth) : nullptr;
    if (backend == nullptr) backend = make_file_threads(options.threads);
    return std::unique_ptr<FileIo>(new FileIo(runtime, std::move(backend)));
  } catch (const std::system_error &e) {
    return Error{Code::kNoMemory, fmt::format("no thread could be made for file I/O: {}", e.what())};
  }
}

/// The operation's result, a count of bytes or -errno; an error: why it was not waited for.
Result<long> FileIo::carry_out(const std::shared_ptr<FileOperation> &operation, const FilePatience &patience) {
  if (auto may_begin = check(patience); !may_begin.ok()) return may_begin.error();
  backend_->submit(operation);
  const auto waited = operation->wait(patience);
  if (waited.ok()) return operation->result();
  const auto why = waited.code() == Code::kTimedOut ? timed_out() : waited.error();
  backend_->cancel(operation);
  if (operation->leave()) return why;
  const auto result = operation->await();
  if (was_cancelled(result)) return why;
  return result;
}

Result<std::size_t> FileIo::read(int file, std::span<std::byte> into, std::uint64_t offset,
                                 const FilePatience &patience) {
  if (auto status = check_range(into.size(), offset); !status.ok()) return status.error();
  std::size_t done = 0;
  while (done != into.size()) {
    const auto rest = into.subspan(done, std::min(into.size() - done, kMostBytes));
    const auto result = carry_out(std::make_shared<FileOperation>(runtime_, FileOperation::Kind::kRead, file, rest,
                                                                  offset + done, patience.owner),
                                  patience);
    if (!result.ok()) return result.error();
    if (may_be_repeated(*result)) continue;
    if (*result < 0) return failed("read", *result);
    if (*result == 0) break;
    done += static_cast<std::size_t>(*result);
  }
  return done;
}

Status FileIo::write(int file, std::span<const std::byte> from, std::uint64_t offset, const FilePatience &patience) {
  if (auto status = check_range(from.size(), offset); !status.ok()) return status;
  for (std::size_t done = 0; done != from.size();) {
    const auto rest = from.subspan(done, std::min(from.size() - done, kMostBytes));
    const std::span<std::byte> memory(const_cast<std::byte *>(rest.data()), rest.size());  // only read
    const auto result = carry_out(std::make_shared<FileOperation>(runtime_, FileOperation::Kind::kWrite, file, memory,
                                                                  offset + done, patience.owner),
                                  patience);
    if (!result.ok()) return result.error();
    if (may_be_repeated(*result)) continue;
    if (*result <= 0) return failed("written", *result == 0 ? -EIO : *result);
    done += static_cast<std::size_t>(*result);
  }
  return {};
}

Status FileIo::sync(int file, const FilePatience &patience) {
  for (;;) {
    const auto result = carry_out(std::make_shared<FileOperation>(runtime_, FileOperation::Kind::kSync, file,
                                                                  std::span<std::byte>(), 0, patience.owner),
                                  patience);
    if (!result.ok()) return result.error();
    if (may_be_repeated(*result)) continue;
    return *result < 0 ? Status(failed("brought to the disk", *result)) : Status();
  }
}

}  // namespace nssi

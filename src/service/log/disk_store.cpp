// SPDX-License-Identifier: BSD-3-Clause
// Design notes. A file is made as a spare one, of its full size, and becomes a segment by its new name; one that nobody
// needs becomes a spare one again. A segment is written to only when the directory on the disk has its name: after a
// power failure no segment that was written to is missing, and no old name has new bytes. That takes its time, so the
// next segment is made when half of the last one is full. Each file is locked, not only the directory: what a process
// that was killed has given to the kernel holds that lock until it is done, and whoever opens the log next waits for
// it.
#include <service/interval_set.hpp>
#include <service/log/reader.hpp>
#include <service/log/store.hpp>
#include <service/log/written_mark.hpp>
#include <service/wait_queue.hpp>
#include <service/worker.hpp>

#include <base/fd.hpp>
#include <nssi/file_io.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <map>
#include <string_view>

namespace nessie::service {
namespace {

constexpr std::size_t kMostSpares = 2;
/// Of a read that is not aligned.
constexpr std::size_t kBounceBytes = std::size_t{1} << 20;
constexpr auto kMostWaitForLock = std::chrono::seconds(10);
constexpr auto kInstant = std::chrono::milliseconds(100);
constexpr std::string_view kSegment = "log.", kSpare = "spare.";

Error failed(const char *what, const std::string &path, int cause) {
  const char *advice = cause == ENOSPC ? "make room there" : "see to that, or name another directory";
  return {Code::kIo, fmt::format("cannot {} {}: {}; {}", what, path, std::strerror(cause), advice), Scope::kService,
          cause};
}

struct File {
  Fd fd;
  bool is_direct = false;
  bool is_dirty = true;  ///< it may have what no sync has covered
  IntervalSet released;
};

/// `what`: that another process has, and what to do about it, if the lock does not come in time.
Status wait_for_lock(nssi::Runtime &runtime, const Fd &file, const std::string &path,
                     std::chrono::milliseconds patience, const std::string &what) {
  const auto deadline = Deadline::in(patience);
  while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return failed("lock", path, errno);
    if (deadline.passed()) return Error{Code::kExists, "another process has " + what};
    runtime.sleep_until(Deadline::in(std::chrono::milliseconds(1)));
  }
  return {};
}

/// Tells past the kernel's cache where the file system can do that. Null: errno says why.
std::shared_ptr<File> open_file(const std::string &path, int flags) {
  auto file = std::make_shared<File>();
  flags |= O_CLOEXEC | O_NOFOLLOW;
  file->fd.reset(::open(path.c_str(), flags | O_DIRECT, 0600));
  file->is_direct = file->fd.valid();
  if (!file->fd && errno == EINVAL) file->fd.reset(::open(path.c_str(), flags & ~O_EXCL, 0600));
  return file->fd ? file : nullptr;
}

void stop_direct(File &file) {
  const int flags = ::fcntl(file.fd.get(), F_GETFL);
  (void)::fcntl(file.fd.get(), F_SETFL, flags & ~O_DIRECT);
  file.is_direct = false;
}

bool is_refusal_of_direct(const Status &status) { return status.code() == Code::kIo && status.error().cause == EINVAL; }

/// False: errno says why.
bool reserve(const File &file, std::uint64_t size_bytes) {
  if (::fallocate(file.fd.get(), 0, 0, static_cast<off_t>(size_bytes)) == 0) return true;
  return errno == EOPNOTSUPP && ::ftruncate(file.fd.get(), static_cast<off_t>(size_bytes)) == 0;
}

class DiskStore final : public LogStore {
 public:
  DiskStore(nssi::Runtime &runtime, DiskStoreOptions options, Fd directory, Fd lock, WrittenMark mark,
            std::unique_ptr<nssi::FileIo> files)
      : runtime_(runtime),
        options_(std::move(options)),
        directory_(std::move(directory)),
        lock_(std::move(lock)),
        mark_(std::move(mark)),
        files_(std::move(files)),
        changed_(runtime) {}

  Status find_files();

  std::vector<LogRange> contents() const override {
    std::vector<LogRange> ranges;
    for (const auto &[number, file] : segments_) ranges.push_back(range_of(number));
    return ranges;
  }
  Result<std::size_t> read(Lsn at, std::span<std::byte> into) override;
  std::uint64_t segment_bytes() const override { return options_.segment_bytes; }
  Status write(Lsn at, std::span<const std::byte> block) override;
  void note_written(Lsn end) override { mark_.raise(end); }
  Lsn written_before() const override { return mark_.left(); }
  Status sync() override;
  void release(const LogRange &range) override;
  std::uint64_t held_bytes() const override {
    return (segments_.size() + spares_.size() + (making_ ? 1 : 0)) * segment_bytes();
  }
  std::string where(Lsn at) const override {
    return fmt::format("byte {} of {}", at % segment_bytes(), path(kSegment, at / segment_bytes()));
  }

 private:
  /// A segment that the worker makes, of a spare file where there is one.
  struct Making {
    std::uint64_t number = 0, spare = 0;
    bool is_ahead = false, is_awaited = false;
    std::shared_ptr<File> file;
    Status status;
    Worker::Task task;
  };
  LogRange range_of(std::uint64_t number) const { return {number * segment_bytes(), (number + 1) * segment_bytes()}; }
  std::string path(std::string_view kind, std::uint64_t number) const {
    return fmt::format("{}/{}{}", options_.directory, kind, number);
  }
  Status adopt(std::string_view kind, std::uint64_t number);

  Result<std::size_t> read_of(const std::shared_ptr<File> &file, std::uint64_t offset, std::span<std::byte> into);
  Result<std::size_t> bounce(const std::shared_ptr<File> &file, std::uint64_t offset, std::span<std::byte> into);
  Result<std::shared_ptr<File>> segment_for(Lsn at);
  Status start_making(std::uint64_t number, bool is_ahead);
  Status make(Making &making) const;
  Status await_made();
  Status refuse_to_write() const {
    return Error{Code::kIo, fmt::format("the log in {} is only read", options_.directory), Scope::kService, EROFS};
  }
  void free_released();
  void set_aside(std::uint64_t number);

  nssi::Runtime &runtime_;
  DiskStoreOptions options_;
  const Fd directory_, lock_;
  WrittenMark mark_;
  const std::unique_ptr<nssi::FileIo> files_;
  Worker worker_{1};
  WaitQueue changed_;
  std::map<std::uint64_t, std::shared_ptr<File>> segments_, spares_;
  std::unique_ptr<Making> making_;
};

// --- opening ----------------------------------------------------------------------------------------------------------

/// Nothing: the name is of another kind.
std::optional<std::uint64_t> number_in(std::string_view name, std::string_view kind) {
  std::uint64_t number = 0;
  if (!name.starts_with(kind)) return std::nullopt;
  name.remove_prefix(kind.size());
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return number;
}

Status DiskStore::find_files() {
  std::error_code error;
  std::vector<std::string> names;
  for (auto entry = std::filesystem::directory_iterator(options_.directory, error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error))
    names.push_back(entry->path().filename());
  if (error) return failed("list", options_.directory, error.value());
  for (const auto &name : names)
    if (const auto number = number_in(name, kSegment))
      if (auto status = adopt(kSegment, *number); !status.ok()) return status;
  if (options_.is_read_only) return {};
  for (const auto &name : names)
    if (const auto number = number_in(name, kSpare))
      if (auto status = adopt(kSpare, *number); !status.ok()) return status;
  return {};
}

/// The size of those that are there goes before what is asked for. A spare one of another size was not finished.
Status DiskStore::adopt(std::string_view kind, std::uint64_t number) {
  const auto name = path(kind, number);
  const auto file = open_file(name, options_.is_read_only ? O_RDONLY : O_RDWR);
  struct stat status {};
  if (!file || ::fstat(file->fd.get(), &status) != 0) return failed("open", name, errno);
  if (!options_.is_read_only)
    if (auto locked = wait_for_lock(runtime_, file->fd, name, kMostWaitForLock, name + " open: end it"); !locked.ok())
      return locked;
  const auto size_bytes = static_cast<std::uint64_t>(status.st_size);
  if (kind == kSegment && segments_.empty() && size_bytes > 0 && size_bytes % kLogAlignment == 0)
    options_.segment_bytes = size_bytes;
  const bool is_of_size = size_bytes == segment_bytes();
  if (kind == kSpare && (!is_of_size || spares_.size() == kMostSpares)) return ::unlink(name.c_str()), Status();
  if (!is_of_size)
    return Error{Code::kIo, fmt::format("{} has {} bytes, and other files of the log have {}: it is none of them", name,
                                        size_bytes, segment_bytes())};
  (kind == kSegment ? segments_ : spares_)[number] = file;
  return {};
}

// --- reading ----------------------------------------------------------------------------------------------------------

Result<std::size_t> DiskStore::read(Lsn at, std::span<std::byte> into) {
  std::size_t done = 0;
  while (done < into.size()) {
    const auto found = segments_.find((at + done) / segment_bytes());
    if (found == segments_.end()) break;
    const auto file = found->second;
    const auto offset = (at + done) % segment_bytes();
    const auto part = into.subspan(done, std::min<std::uint64_t>(into.size() - done, segment_bytes() - offset));
    const auto got = read_of(file, offset, part);
    if (!got.ok()) {
      const auto name = path(kSegment, (at + done) / segment_bytes());
      return got.code() == Code::kIo ? failed("read", name, got.error().cause) : got.error();
    }
    done += *got;
    if (*got < part.size()) break;
  }
  return done;
}

bool is_aligned(std::uint64_t offset, std::span<const std::byte> bytes) {
  const auto all = offset | bytes.size() | reinterpret_cast<std::uintptr_t>(bytes.data());
  return all % kLogAlignment == 0;
}

Result<std::size_t> DiskStore::read_of(const std::shared_ptr<File> &file, std::uint64_t offset,
                                       std::span<std::byte> into) {
  if (file->is_direct && !is_aligned(offset, into)) return bounce(file, offset, into);
  auto got = files_->read(file->fd.get(), into, offset);
  if (got.ok() || !file->is_direct || !is_refusal_of_direct(got.error())) return got;
  stop_direct(*file);
  return files_->read(file->fd.get(), into, offset);
}

Result<std::size_t> DiskStore::bounce(const std::shared_ptr<File> &file, std::uint64_t offset,
                                      std::span<std::byte> into) {
  const auto pages = allocate_pages(kBounceBytes);
  if (!pages) return Error{Code::kNoMemory, "there is no memory to read a log with: try again"};
  std::size_t done = 0;
  while (done < into.size()) {
    const auto begin = (offset + done) / kLogAlignment * kLogAlignment;
    const auto got = files_->read(file->fd.get(),
                                  {pages.get(), std::min<std::uint64_t>(kBounceBytes, segment_bytes() - begin)}, begin);
    if (!got.ok()) return got;
    const auto skipped = offset + done - begin;
    if (*got <= skipped) break;
    const auto part = std::min<std::size_t>(*got - skipped, into.size() - done);
    std::memcpy(into.data() + done, pages.get() + skipped, part);
    done += part;
  }
  return done;
}

// --- writing ----------------------------------------------------------------------------------------------------------

Status DiskStore::write(Lsn at, std::span<const std::byte> block) {
  if (options_.is_read_only) return refuse_to_write();
  const auto segment = segment_for(at);
  if (!segment.ok()) return segment.error();
  const auto file = *segment;
  const auto offset = at % segment_bytes();
  auto status = files_->write(file->fd.get(), block, offset);
  if (!status.ok() && file->is_direct && is_refusal_of_direct(status)) {
    stop_direct(*file);
    status = files_->write(file->fd.get(), block, offset);
  }
  file->is_dirty = true;
  if (status.code() == Code::kIo) return failed("write", path(kSegment, at / segment_bytes()), status.error().cause);
  return status;
}

Result<std::shared_ptr<File>> DiskStore::segment_for(Lsn at) {
  const auto number = at / segment_bytes();
  for (;;) {
    if (const auto found = segments_.find(number); found != segments_.end()) {
      const bool is_half_full = at % segment_bytes() >= segment_bytes() / 2;
      if (is_half_full && !making_ && !segments_.contains(number + 1)) (void)start_making(number + 1, true);
      return found->second;
    }
    if (!making_)
      if (auto started = start_making(number, false); !started.ok()) return started.error();
    if (auto made = await_made(); !made.ok()) return made.error();
  }
}

Status DiskStore::start_making(std::uint64_t number, bool is_ahead) {
  if (spares_.empty() && options_.most_bytes != 0 && held_bytes() + segment_bytes() > options_.most_bytes)
    return Error{Code::kIo,
                 fmt::format("the log in {} has the {} bytes that it may have: let it have more, or see why what it "
                             "has is not needed elsewhere",
                             options_.directory, options_.most_bytes),
                 Scope::kService, ENOSPC};
  making_ = std::make_unique<Making>();
  making_->number = number;
  making_->is_ahead = is_ahead;
  if (!spares_.empty()) {
    making_->spare = spares_.begin()->first;
    making_->file = spares_.begin()->second;
    spares_.erase(spares_.begin());
  }
  making_->task = worker_.start(runtime_, [this, making = making_.get()] { making->status = make(*making); });
  return {};
}

/// By the worker.
Status DiskStore::make(Making &making) const {
  const auto spare = path(kSpare, making.spare), segment = path(kSegment, making.number);
  auto &file = making.file;
  if (!file) file = open_file(spare, O_RDWR | O_CREAT | O_EXCL);
  if (file && ::flock(file->fd.get(), LOCK_EX | LOCK_NB) == 0 && reserve(*file, segment_bytes()) &&
      ::fsync(file->fd.get()) == 0 && ::rename(spare.c_str(), segment.c_str()) == 0 && ::fsync(directory_.get()) == 0)
    return {};
  const int cause = errno;
  (void)::unlink(spare.c_str());
  return failed("make", segment, cause);
}

/// Suspends the fiber until what is being made is there. Ok, too, if it is not, but nobody was waiting when it failed.
Status DiskStore::await_made() {
  if (std::exchange(making_->is_awaited, true)) return changed_.wait();
  making_->task.wait();
  const auto made = std::exchange(making_, nullptr);
  if (made->status.ok()) segments_[made->number] = made->file;
  free_released();
  changed_.notify_all();
  return made->is_ahead ? Status() : made->status;
}

Status DiskStore::sync() {
  if (options_.is_read_only) return refuse_to_write();
  std::vector<std::pair<std::uint64_t, std::shared_ptr<File>>> dirty;
  for (const auto &[number, file] : segments_)
    if (std::exchange(file->is_dirty, false)) dirty.emplace_back(number, file);
  for (const auto &[number, file] : dirty)
    if (auto status = files_->sync(file->fd.get()); !status.ok())
      return status.code() == Code::kIo ? failed("bring to the disk", path(kSegment, number), status.error().cause)
                                        : status;
  return {};
}

// --- releasing --------------------------------------------------------------------------------------------------------

void DiskStore::release(const LogRange &range) {
  if (options_.is_read_only) return;
  for (auto at = segments_.lower_bound(range.begin / segment_bytes());
       at != segments_.end() && at->first * segment_bytes() < range.end; ++at) {
    const auto segment = range_of(at->first);
    at->second->released.add({static_cast<std::int64_t>(std::max(range.begin, segment.begin)),
                              static_cast<std::int64_t>(std::min(range.end, segment.end))});
  }
  free_released();
}

/// The newest stays, so that whoever goes on knows where.
void DiskStore::free_released() {
  for (auto at = segments_.begin(); at != segments_.end() && std::next(at) != segments_.end();) {
    const auto number = at->first;
    const bool is_released = at->second->released.size() == static_cast<std::int64_t>(segment_bytes());
    ++at;
    if (is_released) set_aside(number);
  }
}

void DiskStore::set_aside(std::uint64_t number) {
  const auto segment = segments_.extract(number);
  const auto from = path(kSegment, number), to = path(kSpare, number + 1);
  segment.mapped()->released = {};
  if (spares_.size() < kMostSpares && ::rename(from.c_str(), to.c_str()) == 0)
    spares_[number + 1] = segment.mapped();
  else
    (void)::unlink(from.c_str());
}

// --- the directory ----------------------------------------------------------------------------------------------------

/// This user's, and nobody else's.
Result<Fd> open_directory(const std::string &path, bool makes_it) {
  if (makes_it && ::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return failed("make", path, errno);
  Fd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (!directory || ::fstat(directory.get(), &status) != 0) return failed("open", path, errno);
  if (status.st_uid != ::geteuid() || (status.st_mode & 077) != 0)
    return Error{Code::kRefused, fmt::format("{} is not this user's alone: give it to him, with mode 0700", path)};
  return directory;
}

/// Whoever looks whether a log is in use has the lock for an instant.
Result<Fd> lock_directory(nssi::Runtime &runtime, const std::string &directory) {
  const auto path = directory + "/lock";
  Fd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!lock) return failed("open", path, errno);
  auto locked = wait_for_lock(runtime, lock, path, kInstant,
                              fmt::format("the log in {} open: end it, or name another directory", directory));
  if (!locked.ok()) return locked.error();
  return lock;
}

}  // namespace

Result<std::unique_ptr<LogStore>> open_disk_store(nssi::Runtime &runtime, DiskStoreOptions options) {
  if (options.segment_bytes == 0 || options.segment_bytes % kLogAlignment != 0 ||
      options.segment_bytes < 2 * kLogAlignment)
    return Error{Code::kInvalidArgument,
                 fmt::format("segments of {} bytes: take a multiple of {}", options.segment_bytes, kLogAlignment)};
  auto directory = open_directory(options.directory, !options.is_read_only);
  if (!directory.ok()) return directory.error();
  auto lock = options.is_read_only ? Fd() : lock_directory(runtime, options.directory);
  if (!lock.ok()) return lock.error();
  const auto mark_path = options.directory + "/written";
  auto mark = options.is_read_only ? WrittenMark::look(mark_path) : WrittenMark::open(mark_path);
  if (!mark.ok()) return mark.error();
  auto files = nssi::FileIo::open(runtime);
  if (!files.ok()) return files.error();
  auto store = std::make_unique<DiskStore>(runtime, std::move(options), *std::move(directory), *std::move(lock),
                                           *std::move(mark), *std::move(files));
  if (auto status = store->find_files(); !status.ok()) return status.error();
  return std::unique_ptr<LogStore>(std::move(store));
}

}  // namespace nessie::service

// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/native_file.hpp>

#include <fmt/format.h>
#include <mpi.h>
#include <pnetcdf.h>

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <tuple>

namespace staging {

namespace {

constexpr std::string_view kDataSieving = "romio_ds_write", kCollectiveBuffering = "romio_cb_";
/// Otherwise PnetCDF turns the bytes around where they lie, and back afterwards: pages would change while they drain,
/// and it takes longer.
constexpr std::string_view kSwapInPlace = "nc_in_place_swap", kSwapDefault = "auto";

/// Whether a hint is about what MPI-IO does with the data of several processes. A server is one, and ROMIO's ways for
/// several would read, and write again, what lies between its pieces, which may be another server's; or never end.
bool is_withheld(std::string_view key) {
  return key == kDataSieving || key == kSwapInPlace || key.starts_with(kCollectiveBuffering) ||
         key == "romio_no_indep_rw";
}

std::vector<Hint> withheld_of(const std::vector<Hint> &hints) {
  std::vector<Hint> withheld;
  std::ranges::copy_if(hints, std::back_inserter(withheld), [](const Hint &hint) { return is_withheld(hint.key); });
  return withheld;
}

/// An MPI_Info with the program's hints, but those that are withheld.
class Info {
 public:
  explicit Info(const std::vector<Hint> &hints) {
    MPI_Info_create(&info_);
    for (const auto &hint : hints)
      if (usable(hint)) MPI_Info_set(info_, hint.key.c_str(), hint.value.c_str());
    MPI_Info_set(info_, kDataSieving.data(), "disable");
    MPI_Info_set(info_, kSwapInPlace.data(), "disable");
  }
  ~Info() { MPI_Info_free(&info_); }
  Info(const Info &) = delete;
  operator MPI_Info() const { return info_; }

 private:
  static bool usable(const Hint &hint) {
    return !is_withheld(hint.key) && !hint.key.empty() && hint.key.size() <= MPI_MAX_INFO_KEY && !hint.value.empty() &&
           hint.value.size() < MPI_MAX_INFO_VAL;
  }
  MPI_Info info_;
};

/// A name of an open file that PnetCDF and MPI-IO take, whatever it is called.
std::string path_of(int fd) { return fmt::format("/proc/self/fd/{}", fd); }

/// The name by which the kernel knows an open file now.
std::string name_of(int fd) {
  std::array<char, PATH_MAX> name{};
  const auto size = ::readlink(path_of(fd).c_str(), name.data(), name.size());
  return {name.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
}

/// The same from `at` on, where the kernel does not do it.
bool copy_by_hand(int from, int to, off_t at) {
  std::vector<char> some(1 << 20);
  for (;;) {
    const auto got = ::pread(from, some.data(), some.size(), at);
    if (got <= 0) return got == 0;
    if (::pwrite(to, some.data(), static_cast<std::size_t>(got), at) != got) return false;
    at += got;
  }
}

/// Copies all that is in a file to the beginning of another one.
bool copy_file(int from, int to) {
  loff_t read_at = 0, write_at = 0;
  struct stat status {};
  if (::fstat(from, &status) != 0) return false;
  while (read_at < status.st_size) {
    const auto size = static_cast<std::size_t>(status.st_size - read_at);
    const auto copied = ::copy_file_range(from, &read_at, to, &write_at, size, 0);
    if (copied < 0 && (errno == EXDEV || errno == EINVAL || errno == EOPNOTSUPP))
      return copy_by_hand(from, to, read_at);
    if (copied <= 0) return false;
  }
  return true;
}

}  // namespace

int bytes_of(nc_type type) {
  switch (type) {
    case NC_SHORT:
    case NC_USHORT: return 2;
    case NC_INT:
    case NC_UINT:
    case NC_FLOAT: return 4;
    case NC_DOUBLE:
    case NC_INT64:
    case NC_UINT64: return 8;
    default: return 1;
  }
}

bool errno_may_pass(int system_error) {
  constexpr std::array faults = {ENOSPC, EDQUOT, EIO, ESTALE, ENETDOWN, ETIMEDOUT};
  return std::ranges::find(faults, system_error) != faults.end();
}

bool FileStamp::operator==(const FileStamp &other) const {
  const auto tied = [](const FileStamp &one) {
    return std::tie(one.modified.tv_sec, one.modified.tv_nsec, one.changed.tv_sec, one.changed.tv_nsec, one.size_bytes);
  };
  return tied(*this) == tied(other);
}

FileStamp NativeFile::stamp_now() const {
  struct stat status {};
  if (::fstat(fd_.get(), &status) != 0) return {};
  return {status.st_mtim, status.st_ctim, status.st_size};
}

void NativeFile::look_at_stamp() {
  const auto now = stamp_now();
  if (now == stamp_) return;
  ++changes_by_others_;
  stamp_ = now;
}

std::uint64_t NativeFile::changes_by_others() {
  const std::lock_guard lock(stamp_mutex_);
  if (changing_ == 0) look_at_stamp();
  return changes_by_others_;
}

FileStamp NativeFile::stamp() {
  const std::lock_guard lock(stamp_mutex_);
  return stamp_;
}

NativeFile::~NativeFile() {
  if (ncid_ >= 0) close(0);
}

NativeFile::Opened NativeFile::create(nessie::Fd &&file, int cmode, const std::vector<Hint> &hints) {
  int ncid = -1;
  const Info info(hints);
  const int error = ncmpi_create(MPI_COMM_SELF, path_of(file.get()).c_str(), cmode & ~NC_NOCLOBBER, info, &ncid);
  if (error != NC_NOERR) return {error, nullptr};
  return {NC_NOERR, std::unique_ptr<NativeFile>(new NativeFile(ncid, std::move(file), withheld_of(hints), true, true))};
}

NativeFile::Opened NativeFile::open(nessie::Fd &&file, int omode, const std::vector<Hint> &hints) {
  int ncid = -1;
  const Info info(hints);
  const bool writable = (omode & NC_WRITE) != 0;
  const int error = ncmpi_open(MPI_COMM_SELF, path_of(file.get()).c_str(), omode, info, &ncid);
  if (error != NC_NOERR && error != NC_ENULLPAD) return {error, nullptr};
  return {error,
          std::unique_ptr<NativeFile>(new NativeFile(ncid, std::move(file), withheld_of(hints), writable, false))};
}

std::string NativeFile::renamed_from(const std::string &path) const {
  struct stat own {};
  if (::fstat(fd_.get(), &own) != 0) return {};
  const auto is_found_by = [&](const std::string &name) {
    struct stat found {};
    return ::stat(name.c_str(), &found) == 0 && found.st_dev == own.st_dev && found.st_ino == own.st_ino;
  };
  std::error_code error;
  if (is_found_by(path)) return {};
  auto name = std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", fd_.get()), error).string();
  return is_found_by(name) ? name : std::string();
}

int NativeFile::describe(HeaderResult &result) const {
  MPI_Offset size = 0;
  if (int error = ncmpi_inq_header_size(ncid_, &size); error != NC_NOERR) return error;
  result.header.resize(static_cast<std::size_t>(size));
  const auto got = ::pread(fd_.get(), result.header.data(), result.header.size(), 0);
  if (got != size) return NC_EREAD;
  MPI_Offset read = 0;
  if (ncmpi_inq_get_size(ncid_, &read) == NC_NOERR) result.bytes_read = read;
  result.num_records = num_records();
  result.identity = identity();
  MPI_Info info = MPI_INFO_NULL;
  if (ncmpi_inq_file_info(ncid_, &info) != NC_NOERR) return NC_NOERR;
  int keys = 0, found = 0;
  std::array<char, MPI_MAX_INFO_KEY + 1> key{};
  std::array<char, MPI_MAX_INFO_VAL + 1> value{};
  MPI_Info_get_nkeys(info, &keys);
  for (int i = 0; i < keys; ++i) {
    MPI_Info_get_nthkey(info, i, key.data());
    MPI_Info_get(info, key.data(), MPI_MAX_INFO_VAL, value.data(), &found);
    const auto is_same = [&](const Hint &hint) { return hint.key == key.data(); };
    if (found == 0 || key.data() == kDataSieving || std::ranges::any_of(withheld_, is_same)) continue;
    result.hints.push_back({key.data(), key.data() == kSwapInPlace ? kSwapDefault.data() : value.data()});
  }
  std::ranges::copy(withheld_, std::back_inserter(result.hints));
  MPI_Info_free(&info);
  return NC_NOERR;
}

int NativeFile::variables(std::vector<Variable> &variables) {
  int count = 0, unlimited = -1;
  if (int error = ncmpi_inq(ncid_, nullptr, &count, nullptr, &unlimited); error != NC_NOERR) return error;
  for (int varid = 0; varid < count; ++varid) {
    std::array<char, NC_MAX_NAME + 1> name{};
    int dims = 0;
    if (int error = ncmpi_inq_varndims(ncid_, varid, &dims); error != NC_NOERR) return error;
    std::vector<int> ids(static_cast<std::size_t>(dims) + 1);
    Variable variable;
    if (int error = ncmpi_inq_var(ncid_, varid, name.data(), &variable.type, nullptr, ids.data(), nullptr);
        error != NC_NOERR)
      return error;
    variable.varid = varid;
    variable.name = name.data();
    variable.element_bytes = bytes_of(variable.type);
    variable.is_record = dims > 0 && ids[0] == unlimited;
    for (int d = 0; d < dims; ++d) {
      MPI_Offset length = 0;
      if (!(d == 0 && variable.is_record)) ncmpi_inq_dimlen(ncid_, ids[static_cast<std::size_t>(d)], &length);
      variable.shape.push_back(length);
    }
    has_records_ = has_records_ || variable.is_record;
    variables.push_back(std::move(variable));
  }
  return NC_NOERR;
}

/// Keeps what errno says after a write. Where it was lost on the way up, a file system without room explains itself.
int NativeFile::note_errno(int nc_error) {
  const int cause = errno;
  if (nc_error == NC_NOERR) return nc_error;
  struct statvfs room {};
  constexpr std::array likely = {EFBIG, EACCES, EPERM, EROFS, EBADF};
  write_errno_ = errno_may_pass(cause) || std::ranges::find(likely, cause) != likely.end() ? cause : 0;
  if (write_errno_ == 0 && ::fstatvfs(fd_.get(), &room) == 0 && room.f_bavail == 0) write_errno_ = ENOSPC;
  return nc_error;
}

int NativeFile::reopen_to_read() {
  const Info info({});
  int ncid = -1;
  if (int error = ncmpi_open(MPI_COMM_SELF, path_of(fd_.get()).c_str(), NC_NOWRITE, info, &ncid); error != NC_NOERR)
    return error;
  ncmpi_close(ncid_);
  ncid_ = ncid;
  return NC_NOERR;
}

int NativeFile::sync() {
  const Changing changing(*this);
  errno = 0;
  return note_errno(ncmpi_sync(ncid_));
}

int NativeFile::close(std::int64_t num_records) {
  const Changing changing(*this);
  errno = 0;
  const int error = note_errno(ncmpi_close(ncid_));
  ncid_ = -1;
  const int raised = raise_num_records(num_records);
  return error != NC_NOERR ? error : raised;
}

int NativeFile::abort() {
  const int error = ncmpi_abort(ncid_);
  ncid_ = -1;
  return error;
}

// The directory, too: a new file is found after a power failure only if its name is on the disk.
int NativeFile::sync_to_disk() {
  if (::fdatasync(fd_.get()) != 0) return note_errno(NC_EWRITE);
  const std::string name = name_of(fd_.get());
  const nessie::Fd parent(::open(name.substr(0, name.rfind('/') + 1).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (parent) (void)::fsync(parent.get());
  return NC_NOERR;
}

void NativeFile::forget_cached() { (void)::posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_DONTNEED); }

int NativeFile::save_to(const std::string &path) {
  const auto unfinished = path + ".part";
  const nessie::Fd copy(::open(unfinished.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  const bool is_saved = copy && copy_file(fd_.get(), copy.get()) && ::fsync(copy.get()) == 0 &&
                        ::rename(unfinished.c_str(), path.c_str()) == 0;
  return is_saved ? NC_NOERR : NC_EWRITE;
}

bool NativeFile::restore(int file, const std::string &path) {
  const nessie::Fd saved(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  return saved && ::fstat(saved.get(), &status) == 0 && copy_file(saved.get(), file) &&
         ::ftruncate(file, status.st_size) == 0 && ::fsync(file) == 0;
}

void NativeFile::date_back(const timespec &when) {
  struct stat status {};
  if (::fstat(fd_.get(), &status) != 0) return;
  const auto &changed = status.st_mtim;
  if (std::tie(changed.tv_sec, changed.tv_nsec) <= std::tie(when.tv_sec, when.tv_nsec)) return;
  const Changing changing(*this);
  const timespec times[] = {{0, UTIME_OMIT}, when};
  (void)::futimens(fd_.get(), times);
}

// ncmpi_abort() would remove the file, and only ncmpi_close() lets go of it otherwise: of what MPI-IO holds for it, 16
// MiB with ROMIO. That writes a header, which goes again.
int NativeFile::close_and_empty() {
  const int error = ncmpi_close(ncid_);
  ncid_ = -1;
  return ::ftruncate(fd_.get(), 0) == 0 ? error : NC_EWRITE;
}

// PnetCDF writes some of its sentences into one buffer of the process.
std::string native_message(int nc_error, int system_error) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const std::string native = ncmpi_strerror(nc_error);
  return system_error == 0 ? native : fmt::format("{} ({})", std::strerror(system_error), native);
}

// ncmpi_inq_libvers() says "1.12.3 of 21 Apr 2022".
std::string native_version() {
  const std::string text = ncmpi_inq_libvers();
  return text.substr(0, text.find(' '));
}

}  // namespace staging

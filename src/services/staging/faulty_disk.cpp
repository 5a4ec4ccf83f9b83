// SPDX-License-Identifier: BSD-3-Clause
// In front of the C library's calls, for all that is loaded into the process: its executable exports them.
#include <services/staging/faulty_disk.hpp>

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <mutex>
#include <vector>

namespace staging::testing {

namespace {

std::mutex mutex;
struct {
  bool is_armed = false;
  dev_t device = 0;
  ino_t inode = 0;
  FaultyDisk::Fault fault;
  int failed = 0;
} disk;

bool is_meant(int fd, FaultyDisk::Call call, std::int64_t at, std::int64_t size) {
  const std::lock_guard lock(mutex);
  struct stat status {};
  const auto &fault = disk.fault;
  const bool is_it = disk.is_armed && call == fault.call && disk.failed < fault.times && ::fstat(fd, &status) == 0 &&
                     status.st_dev == disk.device && status.st_ino == disk.inode && at < fault.to &&
                     at + size > fault.from;
  disk.failed += is_it ? 1 : 0;
  errno = is_it ? fault.error : errno;
  return is_it;
}

/// `put` of data, or what the fault makes of it.
template <class Put> ssize_t write_at(int fd, const void *data, size_t size, std::int64_t at, Put put) {
  if (!is_meant(fd, FaultyDisk::Call::kWrite, at, static_cast<std::int64_t>(size))) return put(data);
  if (!disk.fault.turns_a_bit) return -1;
  std::vector<char> changed(static_cast<const char *>(data), static_cast<const char *>(data) + size);
  changed[static_cast<std::size_t>(disk.fault.from - at)] ^= 1;
  return put(changed.data());
}

template <class Function> Function *next(Function *, const char *name) {
  return reinterpret_cast<Function *>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

FaultyDisk::FaultyDisk(const std::string &path, const Fault &fault) {
  struct stat status {};
  const bool is_there = ::stat(path.c_str(), &status) == 0;
  const std::lock_guard lock(mutex);
  disk = {is_there, status.st_dev, status.st_ino, fault, 0};
}

FaultyDisk::~FaultyDisk() { heal(); }

void FaultyDisk::heal() {
  const std::lock_guard lock(mutex);
  disk.is_armed = false;
}

int FaultyDisk::failed() const {
  const std::lock_guard lock(mutex);
  return disk.failed;
}

}  // namespace staging::testing

extern "C" {

using staging::testing::FaultyDisk;
using staging::testing::is_meant;
using staging::testing::next;
using staging::testing::write_at;

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
  static auto *const real = next(&pwrite, "pwrite");
  return write_at(fd, data, size, at, [&](const void *from) { return real(fd, from, size, at); });
}

ssize_t write(int fd, const void *data, size_t size) {
  static auto *const real = next(&write, "write");
  const auto at = ::lseek(fd, 0, SEEK_CUR);
  return write_at(fd, data, size, at, [&](const void *from) { return real(fd, from, size); });
}

int fsync(int fd) {
  static auto *const real = next(&fsync, "fsync");
  return is_meant(fd, FaultyDisk::Call::kSync, 0, 1) ? -1 : real(fd);
}

int fdatasync(int fd) {
  static auto *const real = next(&fdatasync, "fdatasync");
  return is_meant(fd, FaultyDisk::Call::kSync, 0, 1) ? -1 : real(fd);
}
}

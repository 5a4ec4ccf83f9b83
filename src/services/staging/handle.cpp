// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/handle.hpp>

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace staging {

using nessie::Code;
using nessie::Error;

namespace {

FileIdentity identity_in(const struct stat &status) { return {status.st_dev, status.st_ino}; }

std::int64_t changed_ns(const struct stat &status) {
  return std::int64_t{status.st_ctim.tv_sec} * 1'000'000'000 + status.st_ctim.tv_nsec;
}

Error cannot_open_there(const std::string &why, int cause = 0) {
  return {Code::kNotFound, "the staging server, which is on another node, " + why, nessie::Scope::kOperation, cause};
}

}  // namespace

FileIdentity identity_of(int descriptor) {
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 ? identity_in(status) : FileIdentity{};
}

FileIdentity identity_of(const std::string &path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? identity_in(status) : FileIdentity{};
}

std::int64_t born_ns(int descriptor) {
  struct statx status {};
  const bool is_told =
      ::statx(descriptor, "", AT_EMPTY_PATH, STATX_BTIME, &status) == 0 && (status.stx_mask & STATX_BTIME) != 0;
  return is_told ? std::int64_t{status.stx_btime.tv_sec} * 1'000'000'000 + status.stx_btime.tv_nsec : 0;
}

/// Of the kernel itself: in a program that is staged, fstat() waits until servers have written what they have of the
/// file.
FileHandle describe_handle(int descriptor) {
  struct stat status {};
  if (::syscall(SYS_fstat, descriptor, &status) != 0) return {};
  return {0, identity_in(status), changed_ns(status), ::geteuid()};
}

nessie::Status check_given(int descriptor, bool writable) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode))
    return Error{Code::kInvalidArgument, "what the program opened is no regular file"};
  const int flags = ::fcntl(descriptor, F_GETFL), access = flags & O_ACCMODE;
  if ((flags & O_PATH) != 0)
    return Error{Code::kInvalidArgument, "the program's descriptor names a file that it has not opened"};
  if (access == O_RDWR || (access == O_RDONLY && !writable)) return {};
  return Error{Code::kInvalidArgument, "the program's descriptor does not allow what it asks for"};
}

nessie::Status check_lent(int descriptor, bool writable) {
  if (writable || (::fcntl(descriptor, F_GETFL) & O_ACCMODE) == O_RDONLY) return {};
  return Error{Code::kRefused, "the descriptor allows to write, which the program's handle does not"};
}

// What a program on another node says of its user cannot be checked, so root, who could be talked into anything, opens
// nothing for it.
nessie::Result<nessie::Fd> open_by_name(const std::string &path, const FileHandle &handle, bool writable) {
  const auto me = ::geteuid();
  if (me == 0 || me != handle.user)
    return Error{Code::kRefused,
                 fmt::format("the staging server, which is on another node, runs as user {}, the program "
                             "as user {}: it opens files for its own user only, and never as root",
                             me, handle.user)};
  nessie::Fd file(::open(path.c_str(), (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file) return cannot_open_there(fmt::format("cannot open it: {}", std::strerror(errno)), errno);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return cannot_open_there("cannot look at it", errno);
  if (!S_ISREG(status.st_mode) || status.st_ino != handle.identity.inode || changed_ns(status) != handle.changed_ns)
    return cannot_open_there("finds another file under this name");
  return file;
}

}  // namespace staging

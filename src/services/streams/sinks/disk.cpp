// SPDX-License-Identifier: BSD-3-Clause
#include "services/streams/sinks/disk.hpp"

#include <base/printable.hpp>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace nessie::streams::sinks {

namespace {

constexpr std::size_t kFirstLook = std::size_t{64} << 10, kLongestHeader = std::size_t{64} << 20;

}  // namespace

Error cannot(const char *what, const std::string &path) {
  return {Code::kIo, fmt::format("cannot {} {}: {}", what, printable(path), std::strerror(errno)), Scope::kOperation,
          errno};
}

Result<std::string> absolute(const std::string &path) {
  std::error_code problem;
  const auto whole = std::filesystem::absolute(path, problem);
  if (problem || path.empty()) return Error{Code::kInvalidArgument, "a file needs a name"};
  return whole.lexically_normal().string();
}

Result<Fd> open_locked(const std::string &path, int flags) {
  Fd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | flags, 0666));
  if (!fd) return cannot("open", path);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
  return Error{Code::kBusy,
               fmt::format("another process writes {}: end it first, or write another file", printable(path)),
               Scope::kOperation, errno};
}

Status sync_file(const Fd &fd, const std::string &path) {
  return ::fsync(fd.get()) == 0 ? Status() : Status(cannot("sync", path));
}

Result<staging::ClassicHeader> read_header(const Fd &fd, const std::string &path) {
  for (std::vector<std::byte> bytes(kFirstLook);; bytes.resize(2 * bytes.size())) {
    const auto got = ::pread(fd.get(), bytes.data(), bytes.size(), 0);
    if (got < 0) return cannot("read", path);
    auto form = staging::parse_classic_header(std::span(bytes).first(static_cast<std::size_t>(got)));
    const bool is_all = static_cast<std::size_t>(got) < bytes.size() || bytes.size() >= kLongestHeader;
    if (form.code() != Code::kOutOfRange || is_all) return form;
  }
}

Status sync_folder_of(const std::string &path) {
  const auto parent = std::filesystem::path(path).parent_path().string();
  const Fd folder(::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder || ::fsync(folder.get()) != 0) return cannot("sync the folder of", path);
  return {};
}

Status put_in_place(const std::string &beside, const std::string &path, bool is_there) {
  const char *const from = beside.c_str(), *const to = path.c_str();
  int failed = ::renameat2(AT_FDCWD, from, AT_FDCWD, to, is_there ? 0 : RENAME_NOREPLACE);
  if (failed != 0 && errno == EINVAL) failed = ::rename(from, to);  // a file system that does not know how
  return failed == 0 ? Status() : Status(cannot("write", path));
}

}  // namespace nessie::streams::sinks

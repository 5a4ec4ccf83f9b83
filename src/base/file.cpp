// SPDX-License-Identifier: BSD-3-Clause
#include "base/file.hpp"

#include "base/fd.hpp"
#include "base/random.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>

namespace nessie {
namespace {

constexpr std::size_t kMostSettings = 16 << 20;

struct Close {
  void operator()(std::FILE *file) const { std::fclose(file); }
};

Error file_error(Code code, const char *what, const std::string &path) {
  const int cause = errno;
  return {code, fmt::format("cannot {} {}: {}", what, path, std::strerror(cause)), Scope::kProcess, cause};
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const auto written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno != EINTR) return false;
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

/// The file is new, or this fails.
bool write_new_private_file(const std::string &path, std::string_view text) {
  Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  const bool is_written = file.valid() && ::fchmod(file.get(), 0600) == 0 && write_all(file.get(), text);
  return is_written && ::close(file.release()) == 0;  // where NFS says that there was no room
}

enum class Existing { kReplaced, kKept };

Status write_private(const std::string &path, std::string_view text, Existing existing) {
  const auto part = fmt::format("{}.{:016x}.part", path, random_u64());
  const auto give_name = existing == Existing::kKept ? &::link : &std::rename;
  Status status;
  if (!write_new_private_file(part, text) || give_name(part.c_str(), path.c_str()) != 0)
    status = file_error(existing == Existing::kKept && errno == EEXIST ? Code::kExists : Code::kIo, "write", path);
  ::unlink(part.c_str());
  return status;
}

Error cannot_open(const std::string &path) {
  if (errno == ELOOP)
    return {Code::kRefused, fmt::format("{} is a symbolic link, which is not followed: name the file itself", path),
            Scope::kOperation, ELOOP};
  const bool is_missing = errno == ENOENT || errno == ENOTDIR;
  auto error = file_error(is_missing ? Code::kNotFound : Code::kIo, "read", path);
  error.scope = Scope::kOperation;
  return error;
}

enum class Readers { kAll, kOwner };

Status check_trusted(const struct stat &status, const std::string &path, std::size_t limit_bytes, Readers readers) {
  const auto refuse = [&](std::string why) -> Error { return {Code::kRefused, path + std::move(why)}; };
  if (!S_ISREG(status.st_mode)) return refuse(" is not a regular file");
  if (status.st_uid != ::geteuid() && status.st_uid != 0)
    return refuse(fmt::format(" belongs to user {}, who may write anything there; it must be your own, or root's",
                              status.st_uid));
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return refuse(" can be written by others than its owner; take that right away with: chmod go-w");
  if (readers == Readers::kOwner && (status.st_mode & (S_IRGRP | S_IROTH)) != 0)
    return refuse(" can be read by others than its owner; take that right away with: chmod 600, or remove it");
  if (static_cast<std::uint64_t>(status.st_size) > limit_bytes)
    return Error{Code::kTooLarge,
                 fmt::format("{} has {} bytes; {} at most are expected there", path, status.st_size, limit_bytes)};
  return {};
}

Result<std::string> read_checked_file(const std::string &path, std::size_t limit_bytes, Readers readers) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) return cannot_open(path);
  if (auto trusted = check_trusted(status, path, limit_bytes, readers); !trusted.ok()) return trusted.error();
  std::string text(limit_bytes + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const auto got = ::read(file.get(), text.data() + size, text.size() - size);
    if (got == 0) break;
    if (got < 0 && errno != EINTR) return file_error(Code::kIo, "read", path);
    if (got > 0) size += static_cast<std::size_t>(got);
  }
  if (size > limit_bytes) return Error{Code::kTooLarge, path + " grows while it is read"};
  text.resize(size);
  return text;
}

/// Ends soon after that many.
Result<std::string> read_up_to(const std::string &path, std::size_t most_bytes) {
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "rbe"));
  if (!file) return file_error(Code::kNotFound, "read", path);
  std::string text, block(16384, '\0');  // not on the stack, which may be a small one
  while (const auto size = text.size() <= most_bytes ? std::fread(block.data(), 1, block.size(), file.get()) : 0)
    text.append(block.data(), size);
  if (std::ferror(file.get()) != 0) return file_error(Code::kNotFound, "read", path);
  return text;
}

}  // namespace

Result<std::string> read_file(const std::string &path) {
  return read_up_to(path, std::numeric_limits<std::size_t>::max());
}

Result<std::string> read_settings_file(const std::string &path) {
  auto text = read_up_to(path, kMostSettings);
  if (!text.ok() || text->size() <= kMostSettings) return text;
  return Error{Code::kTooLarge,
               fmt::format("{} has more than {} MiB: it is no file of settings", path, kMostSettings >> 20)};
}

std::string first_line_of(const std::string &path) {
  const auto text = read_file(path);
  return text.ok() ? text->substr(0, text->find('\n')) : std::string();
}

Status write_file(const std::string &path, std::string_view text) {
  const auto part = fmt::format("{}.{}.part", path, ::getpid());
  std::FILE *file = std::fopen(part.c_str(), "wbe");
  bool written = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (file != nullptr) written = std::fclose(file) == 0 && written;
  if (written && std::rename(part.c_str(), path.c_str()) == 0) return {};
  auto error = file_error(Code::kIo, "write", path);
  ::unlink(part.c_str());
  return error;
}

Status write_private_file(const std::string &path, std::string_view text) {
  return write_private(path, text, Existing::kReplaced);
}

Status write_first_private_file(const std::string &path, std::string_view text) {
  return write_private(path, text, Existing::kKept);
}

Result<std::string> read_trusted_file(const std::string &path, std::size_t limit_bytes) {
  return read_checked_file(path, limit_bytes, Readers::kAll);
}

Result<std::string> read_private_file(const std::string &path, std::size_t limit_bytes) {
  return read_checked_file(path, limit_bytes, Readers::kOwner);
}

}  // namespace nessie

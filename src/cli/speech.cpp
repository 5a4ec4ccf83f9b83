// SPDX-License-Identifier: BSD-3-Clause
#include "speech.hpp"

#include <base/printable.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <string>
#include <utility>

namespace nessie::cli {

namespace {

constexpr int kPatienceMs = 1000;  // with a terminal that is stopped, a pipe that nobody empties

/// False: no more of it can be written; errno says why. A pipe that has room has it for PIPE_BUF bytes; who writes more
/// at once may have to wait.
bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    pollfd room{fd, POLLOUT, 0};
    if (poll(&room, 1, kPatienceMs) == 0) return errno = EAGAIN, false;
    const auto written = ::write(fd, text.data(), std::min<std::size_t>(text.size(), PIPE_BUF));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

Status cannot_write(const std::string &path, int cause) {
  return Error{Code::kIo, fmt::format("cannot write {}: {}", printable(path), std::strerror(cause)), Scope::kOperation,
               cause};
}

}  // namespace

std::string counted(std::uint64_t number, std::string_view thing) {
  return fmt::format("{} {}{}", number, thing, number == 1 ? "" : "s");
}

void write_to_stderr(std::string_view text) { (void)write_all(STDERR_FILENO, text); }

void say(std::string_view text) { write_to_stderr(fmt::format("nessie: {}\n", text)); }

ProgressLine::ProgressLine(bool quiet) : wanted_(!quiet && ::isatty(STDERR_FILENO)) {}

void ProgressLine::show(std::string_view text) {
  if (!wanted_) return;
  shown_ = true;
  write_to_stderr(fmt::format("\r\033[Knessie: {}", text));
}

void ProgressLine::hide() {
  if (std::exchange(shown_, false)) write_to_stderr("\r\033[K");
}

int say_failure(std::string_view command, std::string_view why) {
  write_to_stderr(fmt::format("nessie {}: {}\n", command, why));
  return 1;
}

Status write_output(const std::string &path, std::string_view text) {
  // Without O_NONBLOCK a FIFO that nobody reads would be waited for.
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0666);
  if (fd < 0) return cannot_write(path, errno);
  const bool written = write_all(fd, text);
  const int cause = errno;
  if (::close(fd) != 0 && written) return cannot_write(path, errno);
  return written ? Status() : cannot_write(path, cause);
}

bool is_stream(const std::string &path, int fd) {
  struct stat named {
  }, open{};
  return ::stat(path.c_str(), &named) == 0 && ::fstat(fd, &open) == 0 && named.st_dev == open.st_dev &&
         named.st_ino == open.st_ino;
}

}  // namespace nessie::cli

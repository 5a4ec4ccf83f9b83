// SPDX-License-Identifier: BSD-3-Clause
#include "partner.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>

namespace nessie::cli {

namespace {

constexpr auto kStartTimeout = std::chrono::seconds(10);
constexpr auto kLongestLife = std::chrono::minutes(2);

Result<std::shared_ptr<nnti::Context>> listen(const Config &config, const Credential &credential,
                                              std::vector<std::string> transports) {
  nnti::ContextOptions options;
  options.transports = std::move(transports);
  options.credential = credential;
  options.config = config;
  return nnti::Context::open(std::move(options));
}

/// Takes part in what peers do, until `end` or until it is told to stop. Nothing is ever sent to its buffer.
void take_part(nnti::Context &context, Deadline end, const std::atomic<bool> &stop) {
  std::uint64_t word = 0;
  auto nothing = context.register_memory(&word, sizeof word, 1, nnti::Purpose::kReceiveDestination);
  while (nothing.ok() && !stop && !end.passed()) (void)context.wait(nothing->local(), nnti::Purpose::kNone, end).ok();
  if (nothing.ok()) (void)context.unregister(nothing->local()).ok();
}

/// The whole life of the partner process, which its parent ends. A line on `url_fd`: the URL, or "!" and why there is
/// none.
[[noreturn]] void serve(const Config &config, const Credential &credential, pid_t parent, int url_fd) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  auto context = listen(config, credential, {});
  const auto line = context.ok() ? (*context)->url() : "!" + context.error().message;
  const bool told = write(url_fd, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  close(url_fd);
  if (told && context.ok()) take_part(**context, Deadline::in(kLongestLife), false);
  _exit(0);
}

}  // namespace

Result<PartnerProcess> PartnerProcess::start(const Config &config, const Credential &credential) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return Error{Code::kIo, "cannot make a pipe", Scope::kProcess, errno};
  const pid_t parent = getpid(), process = fork();
  if (process == 0) {
    close(ends[0]);
    serve(config, credential, parent, ends[1]);
  }
  close(ends[1]);
  PartnerProcess partner(process, ends[0]);
  if (process < 0) return Error{Code::kIo, "cannot fork", Scope::kProcess, errno};
  return partner;
}

PartnerProcess::~PartnerProcess() {
  if (url_fd_ >= 0) close(url_fd_);
  if (process_ <= 0) return;
  kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
}

Result<std::string> PartnerProcess::url() {
  const auto deadline = Deadline::in(kStartTimeout);
  std::string text;
  std::array<char, 1024> part{};
  for (pollfd readable{url_fd_, POLLIN, 0}; poll(&readable, 1, deadline.poll_timeout_ms()) > 0;) {
    const auto got = read(url_fd_, part.data(), part.size());
    if (got > 0) {
      text.append(part.data(), static_cast<std::size_t>(got));
      continue;
    }
    if (text.empty()) return Error{Code::kPeerLost, "the process to measure against ended before it listened"};
    if (text.front() == '!') return Error{Code::kUnsupported, text.substr(1)};
    return text;
  }
  return Error{Code::kTimedOut, "the process to measure against did not start in time"};
}

Result<std::unique_ptr<PartnerThread>> PartnerThread::start(const Config &config, const Credential &credential,
                                                            const std::string &transport) {
  auto partner = std::make_unique<PartnerThread>();
  auto context = listen(config, credential, {transport});
  if (!context.ok()) return context.error();
  partner->context_ = std::move(*context);
  partner->thread_ =
      std::thread([self = partner.get()] { take_part(*self->context_, Deadline::in(kLongestLife), self->stop_); });
  return partner;
}

PartnerThread::~PartnerThread() {
  stop_.store(true);
  if (!thread_.joinable()) return;
  context_->interrupt();
  thread_.join();
}

}  // namespace nessie::cli

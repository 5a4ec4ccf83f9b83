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

Result<std::unique_ptr<nnti::Endpoint>> listen(const Config &config, const Credential &credential,
                                               std::vector<std::string> transports, nnti::EventSink &sink) {
  nnti::EndpointOptions options;
  options.transports = std::move(transports);
  options.credential = credential;
  options.config = config;
  return nnti::Endpoint::open(std::move(options), sink);
}

/// The whole life of the partner process, which its parent ends. A line on `url_fd`: the URL, or "!" and why there is
/// none.
[[noreturn]] void serve(const Config &config, const Credential &credential, pid_t parent, int url_fd) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  SilentSink sink;
  auto endpoint = listen(config, credential, {}, sink);
  const auto line = endpoint.ok() ? (*endpoint)->url() : "!" + endpoint.error().message;
  const bool told = write(url_fd, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  close(url_fd);
  const auto end = Deadline::in(kLongestLife);
  while (told && endpoint.ok() && !end.passed())
    if ((*endpoint)->progress() == 0) (*endpoint)->wait(end);
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
  auto endpoint = listen(config, credential, {transport}, partner->sink_);
  if (!endpoint.ok()) return endpoint.error();
  partner->endpoint_ = std::move(*endpoint);
  partner->thread_ = std::thread([self = partner.get()] {
    while (!self->stop_.load())
      if (self->endpoint_->progress() == 0) self->endpoint_->wait(Deadline::in(kLongestLife));
  });
  return partner;
}

PartnerThread::~PartnerThread() {
  stop_.store(true);
  if (!thread_.joinable()) return;
  endpoint_->wake();
  thread_.join();
}

}  // namespace nessie::cli

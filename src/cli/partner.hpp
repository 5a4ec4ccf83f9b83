// SPDX-License-Identifier: BSD-3-Clause
// Somebody to measure against: a context in a process, or in a thread, of its own. It answers probes, which every
// endpoint does by itself, and takes the messages of a measurement of rendezvous.
#pragma once

#include <base/config.hpp>
#include <base/credential.hpp>
#include <nessie/result.hpp>
#include <nnti/context.hpp>

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>

namespace nessie::cli {

/// Listens on every transport that this machine has. Killed and reaped when this goes; gone with this process, too.
class PartnerProcess {
 public:
  /// To be called before the first thread is started, and before a network library is opened: it forks.
  static Result<PartnerProcess> start(const Config &config, const Credential &credential);
  PartnerProcess(PartnerProcess &&other) noexcept
      : process_(std::exchange(other.process_, -1)), url_fd_(std::exchange(other.url_fd_, -1)) {}
  ~PartnerProcess();

  /// Waits for it to come up. kTimedOut, kPeerLost: it has ended.
  Result<std::string> url();

 private:
  PartnerProcess(pid_t process, int url_fd) : process_(process), url_fd_(url_fd) {}
  pid_t process_ = -1;
  int url_fd_ = -1;
};

/// Listens on one transport, in this process.
class PartnerThread {
 public:
  static Result<std::unique_ptr<PartnerThread>> start(const Config &config, const Credential &credential,
                                                      const std::string &transport);
  ~PartnerThread();
  const std::string &url() const { return context_->url(); }

 private:
  std::shared_ptr<nnti::Context> context_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace nessie::cli

// SPDX-License-Identifier: BSD-3-Clause
#include <interpose/embedded/server.hpp>

#include <interpose/embedded/embedded_abi.h>
#include <base/descriptors.hpp>
#include <base/fd.hpp>
#include <interpose/embedded/signals.hpp>
#include <services/staging/server/provider.hpp>

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace embedded {

using nessie::Code;
using nessie::Error;
using nessie::Result;
using nessie::Status;

namespace {

/// The threads that begin meanwhile may use all processors that the launcher may use: it has bound this process to one,
/// mostly, which the program keeps busy.
class LaunchersProcessors {
 public:
  LaunchersProcessors() {
    cpu_set_t theirs;
    is_changed_ = ::sched_getaffinity(0, sizeof before_, &before_) == 0 &&
                  ::sched_getaffinity(::getppid(), sizeof theirs, &theirs) == 0 &&
                  ::sched_setaffinity(0, sizeof theirs, &theirs) == 0;
  }
  ~LaunchersProcessors() {
    if (is_changed_) ::sched_setaffinity(0, sizeof before_, &before_);
  }
  LaunchersProcessors(const LaunchersProcessors &) = delete;

 private:
  cpu_set_t before_{};
  bool is_changed_ = false;
};

/// A server keeps two descriptors for each file of which the program's process keeps one: the process may have so many
/// more, as far as it may raise its limit. The number from which on they are left to the program.
int make_room_for_descriptors() {
  constexpr rlim_t kOwn = 64, kMost = 65536;
  rlimit programs{}, all{};
  if (::getrlimit(RLIMIT_NOFILE, &programs) != 0) return kMost;
  nessie::raise_limit(RLIMIT_NOFILE, std::min(kMost, 3 * std::min(kMost, programs.rlim_cur) + kOwn));
  if (::getrlimit(RLIMIT_NOFILE, &all) != 0) return kMost;
  return static_cast<int>(std::min(kMost, all.rlim_cur - programs.rlim_cur / 2));
}

/// What this thread does with files goes past the shim, if there is one.
void serve_on_this_thread() {
  static const auto serve = reinterpret_cast<void (*)()>(::dlsym(RTLD_DEFAULT, NESSIE_PNETCDF_SERVE_SYMBOL));
  if (serve != nullptr) serve();
}

}  // namespace

Result<std::unique_ptr<Server>> Server::start(ServerStart start) {
  std::unique_ptr<Server> server(new Server(std::move(start)));
  if (auto status = server->open(); !status.ok()) return status.error();
  return server;
}

Status Server::open() {
  const SignalsHeldBack held;
  const LaunchersProcessors processors;
  descriptors_ = make_room_for_descriptors();
  nessie::service::HostOptions options;
  options.runtime.endpoint.config = start_.config;
  options.runtime.endpoint.credential = start_.credential;
  options.runtime.endpoint.transports = nessie::split(start_.config.get_or("staging.listen", ""), ", ");
  staging::prepare_runtime(options.runtime);
  auto host = nessie::service::Host::open(std::move(options));
  if (!host.ok()) return host.error();
  host_ = *std::move(host);
  if (auto placed = take_place(); !placed.ok()) return placed;
  host_->runtime().spawn(serve_on_this_thread);
  thread_ = std::thread([this] {
    serve_on_this_thread();
    host_->run();
  });
  return {};
}

/// A place is free as long as nobody has a ledger there: of a server that was killed it tells what was lost.
Status Server::take_place() {
  for (int place = 0; place < std::max(start_.most_boards, 1); ++place) {
    ledger_path_ = fmt::format("{}/server.{}.ledger", start_.folder, place);
    const nessie::Fd claimed(::open(ledger_path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (claimed && ::fchmod(claimed.get(), 0600) == 0) return host_in(place);  // whatever the program's mask is
    if (errno != EEXIST)
      return Error{Code::kIo, fmt::format("cannot make {}: {}", ledger_path_, std::strerror(errno)), {}, errno};
  }
  ledger_path_.clear();
  return Error{Code::kExists,
               fmt::format("there are too many servers at once, or were killed: {} has no place left", start_.folder)};
}

Status Server::host_in(int place) {
  auto options = staging::server_options(start_.config);
  if (!options.ok()) return options.error();
  options->index = static_cast<std::uint32_t>(start_.index), options->servers = static_cast<std::uint32_t>(start_.of);
  options->descriptors = descriptors_;
  options->ledger_path = ledger_path_;
  if (!start_.boards.empty()) options->board_path = fmt::format("{}/board.{}", start_.boards, place);
  options->on_end = [this](const staging::ReportResult &report) { report_ = report; };
  report_name_ = fmt::format("server.{}.{}.report", place, ::getpid());
  const auto started = host_->start({.name = "staging", .type = "staging"}, [&](const auto &context) {
    return staging::Server::start(context, *std::move(options));
  });
  if (!started.ok()) return started.error();
  return {};
}

staging::ReportResult Server::end() {
  if (thread_.joinable()) {
    host_->end();
    thread_.join();
    host_->finish();
  }
  return report_;
}

Server::~Server() {
  (void)end();
  if (!ledger_path_.empty()) ::unlink(ledger_path_.c_str());
}

}  // namespace embedded

// SPDX-License-Identifier: BSD-3-Clause
// Servers that die while this process does something else.
//
// Design notes. One that takes another one's place waits for all processes that are alive to send again what they had
// no answer to. A process may be in a call of MPI's then, and wait there for one that waits for the server. So a thread
// of its own sleeps until a server's process ends, and comes back. A server of another node is asked for a sign of life
// now and then, as long as it has something unanswered.
#include <services/staging/client/impl.hpp>

#include <base/thread.hpp>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace staging {

namespace {

constexpr int kGlanceMs = 500;

/// Readable when the process has ended. Empty: it is none of this node.
nessie::Fd open_process(const Result<pid_t> &process) {
  return nessie::Fd(process.ok() ? static_cast<int>(::syscall(SYS_pidfd_open, *process, 0)) : -1);
}

}  // namespace

void Client::expect_return() {
  const std::lock_guard lock(impl_->mutex);
  impl_->expect_return();
}

void Client::Impl::expect_return() {
  if (std::exchange(expects_return, true)) return;
  watch_ends = nessie::Fd(::eventfd(0, EFD_CLOEXEC));
  if (!watch_ends) return;  // this process comes back with its next call
  watcher = nessie::start_thread([this] { watch(); });
}

void Client::Impl::end_watch() {
  if (!watcher.joinable()) return;
  is_ending = true;
  {
    const Unlocked watcher_goes_on(mutex);
    const std::uint64_t one = 1;
    (void)!::write(watch_ends.get(), &one, sizeof one);
    watcher.join();
  }
}

void Client::Impl::watch() {
  struct Watched {
    nssi::PeerId peer{};
    nessie::Fd process = {};
    bool is_known = false;
  };
  std::vector<Watched> watched(servers.size());
  const std::lock_guard lock(mutex);
  while (!is_ending) {
    std::vector<pollfd> polled{{watch_ends.get(), POLLIN, 0}};
    bool asks = false;
    for (int s = 0; s < count(); ++s) {
      auto &one = watched[static_cast<std::size_t>(s)];
      if (!one.is_known || one.peer != at(s).peer)
        one = {at(s).peer, open_process(runtime->process_of(at(s).peer)), true};
      const bool is_watched = at(s).returns && !at(s).lost;
      asks = asks || (is_watched && !one.process);
      polled.push_back({is_watched ? one.process.get() : -1, POLLIN, 0});
    }
    {
      const Unlocked others_go_on(mutex);
      (void)::poll(polled.data(), polled.size(), asks ? kGlanceMs : -1);
    }
    for (int s = 0; s < count() && !is_ending; ++s) {
      const auto &one = watched[static_cast<std::size_t>(s)];
      const bool has_ended = polled[static_cast<std::size_t>(s) + 1].revents != 0;
      if (at(s).returns && !at(s).lost && (one.process ? has_ended : is_gone(s))) (void)await_return(s, one.peer);
    }
  }
}

/// Whether a server of another node has died that has something unanswered.
bool Client::Impl::is_gone(int server) {
  if (at(server).unanswered.empty() || at(server).is_returning) return false;
  return ping(server, timeout).code() == nessie::Code::kPeerLost;
}

}  // namespace staging

// SPDX-License-Identifier: BSD-3-Clause
// Servers that die while this process does something else.
//
// Design notes. One that takes another one's place waits for all processes that are alive to send again what they had
// no answer to. A process may be in a call of MPI's then, and wait there for one that waits for the server. So a thread
// of its own sleeps until a server's process ends, and has another one come back: one for each server, as those that
// are gone for good are waited for together. A server of another node is asked for a sign of life now and then, as long
// as it has something unanswered, or another one is gone.
#include <services/staging/client/impl.hpp>

#include <base/thread.hpp>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>

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
  watch_changes = nessie::Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!watch_changes) return;  // this process comes back with its next call
  watcher = nessie::start_thread([this] { watch(); });
}

void Client::Impl::end_watch() {
  if (!watcher.joinable()) return;
  is_ending = true;
  {
    const Unlocked watcher_goes_on(mutex);
    wake_watcher();
    watcher.join();
  }
}

void Client::Impl::wake_watcher() const {
  const std::uint64_t one = 1;
  if (watch_changes) (void)!::write(watch_changes.get(), &one, sizeof one);
}

void Client::Impl::watch() {
  struct Watched {
    nssi::PeerId peer{};
    nessie::Fd process = {};
    bool is_known = false, has_died = false;
    std::thread comes_back = {};
  };
  std::vector<Watched> watched(servers.size());
  const auto is_watched = [&](int s) {
    return at(s).returns && !at(s).lost && !at(s).is_returning && !watched[static_cast<std::size_t>(s)].has_died;
  };
  const std::lock_guard lock(mutex);
  while (!is_ending) {
    std::vector<pollfd> polled{{watch_changes.get(), POLLIN, 0}};
    bool asks = false;
    for (int s = 0; s < count(); ++s) {
      auto &one = watched[static_cast<std::size_t>(s)];
      if (!one.is_known || one.peer != at(s).peer) {
        one.peer = at(s).peer, one.process = open_process(runtime->process_of(at(s).peer));
        one.is_known = true, one.has_died = false;
      }
      asks = asks || (is_watched(s) && !one.process);
      polled.push_back({is_watched(s) ? one.process.get() : -1, POLLIN, 0});
    }
    {
      const Unlocked others_go_on(mutex);
      (void)::poll(polled.data(), polled.size(), asks ? kGlanceMs : -1);
      std::uint64_t changes = 0;
      (void)!::read(watch_changes.get(), &changes, sizeof changes);
    }
    for (int s = 0; s < count() && !is_ending; ++s) {
      auto &one = watched[static_cast<std::size_t>(s)];
      const bool has_ended = polled[static_cast<std::size_t>(s) + 1].revents != 0;
      if (!is_watched(s) || !(one.process ? has_ended : is_gone(s)) || is_ending) continue;
      one.has_died = true;
      const Unlocked others_go_on(mutex);
      if (one.comes_back.joinable()) one.comes_back.join();  // of the one before
      one.comes_back = nessie::start_thread([this, s, peer = one.peer] {
        const std::lock_guard its_own(mutex);
        (void)await_return(s, peer);
      });
    }
  }
  const Unlocked others_go_on(mutex);
  for (auto &one : watched)
    if (one.comes_back.joinable()) one.comes_back.join();
}

/// Whether a server of another node has died that has something unanswered.
bool Client::Impl::is_gone(int server) {
  const auto is_returning = [](const Server &other) { return other.is_returning; };
  if (at(server).unanswered.empty() && std::ranges::none_of(servers, is_returning)) return false;
  return ping(server, std::min(timeout, std::chrono::milliseconds(kGlanceMs))).code() == nessie::Code::kPeerLost;
}

}  // namespace staging

// SPDX-License-Identifier: BSD-3-Clause
#include <dirent.h>
#include <execinfo.h>
#include <signal.h>
#include <sys/syscall.h>

#include <cstdio>
#include <cstdlib>

#include "chaos.hpp"

namespace chaos {

namespace {

constexpr milliseconds kTurn{50}, kStopped{400};

std::atomic<bool> is_asked_for_stacks{false};

void show_own_stack(int) {
  void *frames[48];
  const int count = ::backtrace(frames, 48);
  ::backtrace_symbols_fd(frames, count, 2);
  (void)!::write(2, "--\n", 3);
}

void show_and_die(int signal) {
  show_own_stack(signal);
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

/// Of each thread, one after the other.
void show_stacks() {
  auto *tasks = ::opendir("/proc/self/task");
  if (tasks == nullptr) return;
  while (auto *entry = ::readdir(tasks)) {
    const auto thread = static_cast<pid_t>(std::atoi(entry->d_name));
    if (thread <= 0 || thread == static_cast<pid_t>(::syscall(SYS_gettid))) continue;
    ::syscall(SYS_tgkill, ::getpid(), thread, SIGUSR2);
    std::this_thread::sleep_for(milliseconds(100));
  }
  ::closedir(tasks);
}

}  // namespace

Watchdog::Watchdog(std::function<void()> on_hang) : on_hang_(std::move(on_hang)) {
  void *frame[1];
  (void)::backtrace(frame, 1);  // loads what it needs now, not in a signal handler
  ::signal(SIGUSR2, show_own_stack);
  for (int fatal : {SIGSEGV, SIGBUS, SIGABRT}) ::signal(fatal, show_and_die);
  ::signal(SIGUSR1, [](int) { is_asked_for_stacks.store(true); });
  thread_ = std::thread([this] { run(); });
}

Watchdog::~Watchdog() {
  ends_.store(true);
  thread_.join();
}

void Watchdog::run() {
  auto last = now_us(), not_before = last;
  while (!ends_.load()) {
    std::this_thread::sleep_for(kTurn);
    if (is_asked_for_stacks.exchange(false)) show_stacks();
    const auto now = now_us();
    if (now - last > kStopped.count() * 1000) not_before = now + kGrace.count() * 1000;
    last = now;
    const std::lock_guard lock(mutex_);
    for (auto &each : dues_) {
      const auto due = each->load();
      if (due == 0 || now < due || now < not_before) continue;
      std::fprintf(stderr, "a call hangs: its thread should have been back %lld ms ago\n",
                   static_cast<long long>((now - due) / 1000));
      on_hang_();
      show_stacks();
      std::abort();
    }
  }
}

}  // namespace chaos

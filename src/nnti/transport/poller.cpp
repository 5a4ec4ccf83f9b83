// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transport/poller.hpp"

#include <sys/epoll.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <span>

namespace nnti {

Poller::Poller() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {}

void Poller::watch(int fd, Handler &handler, Trigger trigger) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP | (trigger == Trigger::kEdge ? static_cast<unsigned>(EPOLLET) : 0u);
  event.data.ptr = &handler;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void Poller::unwatch(int fd) { ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }

namespace {

/// In nanoseconds where the kernel can (Linux 5.11).
int wait_until(int epoll, std::span<epoll_event> events, nessie::Deadline deadline) {
  const auto size = static_cast<int>(events.size());
  if (deadline.is_never()) return ::epoll_wait(epoll, events.data(), size, -1);
  if (deadline.passed()) return ::epoll_wait(epoll, events.data(), size, 0);
#ifndef __SANITIZE_THREAD__  // the sanitizer hands a signal over only in calls that it knows, and this is none
  const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(deadline.when() - nessie::Clock::now());
  timespec time{};
  if (left.count() > 0) time = {left.count() / 1'000'000'000, left.count() % 1'000'000'000};
  const int count = ::epoll_pwait2(epoll, events.data(), size, &time, nullptr);
  if (count >= 0 || errno != ENOSYS) return count;
#endif
  return ::epoll_wait(epoll, events.data(), size, deadline.poll_timeout_ms());
}

}  // namespace

int Poller::dispatch(nessie::Deadline deadline) {
  std::array<epoll_event, 64> events;
  const int count = wait_until(epoll_.get(), events, deadline);
  for (int i = 0; i < count; ++i) static_cast<Handler *>(events[static_cast<std::size_t>(i)].data.ptr)->on_fd_ready();
  return count;
}

}  // namespace nnti

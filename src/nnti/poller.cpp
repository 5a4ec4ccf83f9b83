// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/poller.hpp"

#include <sys/epoll.h>

#include <array>

namespace nnti {

Poller::Poller() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {}

void Poller::watch(int fd, Handler &handler, Trigger trigger) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP | (trigger == Trigger::kEdge ? static_cast<unsigned>(EPOLLET) : 0u);
  event.data.ptr = &handler;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void Poller::unwatch(int fd) { ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }

int Poller::dispatch(int timeout_ms) {
  std::array<epoll_event, 64> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout_ms);
  for (int i = 0; i < count; ++i) static_cast<Handler *>(events[static_cast<std::size_t>(i)].data.ptr)->on_fd_ready();
  return count;
}

}  // namespace nnti

// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/tcp/streams.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <utility>

namespace nnti::tcp {
namespace {

constexpr std::size_t kReadBlindly = 4;  // streams; of more, the kernel is asked which have something
constexpr unsigned kSleepless = 4096;    // polls, after which nobody is expected to sleep

}  // namespace

Link::Link(nessie::Fd socket, Streams &streams, LinkHost &host)
    : stream_(std::move(socket), host, streams.commons_), streams_(streams), host_(host) {
  streams_.add(*this);
}

Link::~Link() { streams_.remove(*this); }

void Link::send_frame(std::span<const std::byte> header, std::span<const std::byte> body) {
  stream_.send_frame(header, body, !streams_.slept_on_);
  if (stream_.has_unsent()) flush_later();
}

bool Link::send_chunk(std::span<const std::byte> header, std::span<const std::byte> bytes, std::uint64_t id) {
  if (stream_.send_chunk(header, bytes, id)) return true;
  flush_later();
  return false;
}

void Link::close() {
  streams_.unwatch(*this);
  stream_.close();
}

void Link::flush_later() {
  if (!std::exchange(waits_for_flush_, true)) streams_.to_flush_.push_back(this);
}

std::size_t Link::poll() {
  const bool came = stream_.receive() > 0;
  if (stream_.end()) host_.on_end(*stream_.end());
  return came ? 1 : 0;
}

/// Returns whether anything went.
bool Link::flush() {
  const bool went = stream_.flush() > 0;
  if (host_.pump_chunks() || stream_.has_unsent())
    flush_later();
  else if (std::exchange(watched_for_writing_, false))
    streams_.watch(*this);
  return went;
}

// --- all of them --------------------------------------------------------------------------------------------------------

Streams::Streams(Poller &poller) : poller_(poller), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {}

void Streams::add(Link &link) {
  links_.push_back(&link);
  if (watched_) poller_.watch(link.stream_.fd(), link);
  if (many_) return watch(link);
  many_ = links_.size() > kReadBlindly;
  if (many_)
    for (Link *each : links_) watch(*each);
}

void Streams::remove(Link &link) {
  unwatch(link);
  std::erase(links_, &link);
  std::erase(to_flush_, &link);
}

void Streams::watch(Link &link) {
  const int fd = link.stream_.fd();
  epoll_event event{};
  event.events = (many_ ? EPOLLIN : 0u) | (link.watched_for_writing_ ? EPOLLOUT : 0u);
  event.data.ptr = &link;
  if (fd < 0) return;  // it is closed
  if (event.events == 0)
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  else if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) != 0)
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
}

/// Before it is closed: one that a forked process has, too, would stay in the sets.
void Streams::unwatch(const Link &link) {
  const int fd = link.stream_.fd();
  if (fd < 0) return;  // it is closed
  poller_.unwatch(fd);
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

/// A descriptor that somebody watches costs time with each segment that arrives: so only while somebody sleeps.
void Streams::set_watched(bool watched) {
  polls_ = 0;
  if (std::exchange(watched_, watched) == watched) return;
  for (Link *link : links_) {
    if (link->stream_.fd() < 0) continue;  // it is closed
    if (watched)
      poller_.watch(link->stream_.fd(), *link);
    else
      poller_.unwatch(link->stream_.fd());
  }
}

/// Few streams are read at once: to ask for those that have something takes as long as to read one.
std::size_t Streams::poll() {
  slept_on_ = false;
  if (!many_ && ++polls_ > kSleepless) set_watched(false);
  std::size_t had = to_flush_.empty() ? 0 : flush();
  if (!many_) {
    for (Link *link : links_) had += link->poll();
    return had;
  }
  std::array<epoll_event, 64> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), 0);
  for (int i = 0; i < count; ++i) had += static_cast<Link *>(events[i].data.ptr)->poll();
  return had;
}

std::size_t Streams::flush() {
  std::size_t went = 0;
  for (std::size_t left = to_flush_.size(); left > 0; --left) {
    Link &link = *to_flush_.front();
    to_flush_.pop_front();
    link.waits_for_flush_ = false;
    went += link.flush() ? 1 : 0;
  }
  return went;
}

void Streams::arm() {
  set_watched(true);
  slept_on_ = true;
  for (Link *link : to_flush_) {
    link->stream_.push();
    if (!std::exchange(link->watched_for_writing_, true)) watch(*link);
  }
}

}  // namespace nnti::tcp

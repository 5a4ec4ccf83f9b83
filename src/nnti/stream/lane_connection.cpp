// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/stream/lane_connection.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <utility>

namespace nnti::stream {
namespace {

constexpr std::size_t kReadBlindly = 4;  // lanes; of more, the kernel is asked which have something
constexpr unsigned kSleepless = 4096;    // polls, after which nobody is expected to sleep

}  // namespace

LaneConnection::LaneConnection(nessie::Fd socket, LaneSet &set, LaneHost &host)
    : lane_(std::move(socket), static_cast<LaneEvents &>(*this), set.commons_),
      set_(set),
      host_(host),
      transfers_(lane_, static_cast<TransfersHost &>(*this)) {
  set_.add(*this);
}

LaneConnection::~LaneConnection() { set_.remove(*this); }

void LaneConnection::send_frame(std::span<const std::byte> header, std::span<const std::byte> body) {
  lane_.send_frame(header, body, !set_.slept_on_);
  if (lane_.has_unsent()) pump_later();
}

void LaneConnection::close() {
  transfers_.stop_theirs();
  set_.unwatch(*this);
  lane_.close();
}

void LaneConnection::finish_later() {
  if (!std::exchange(waits_for_finish_, true)) set_.to_finish_.push_back(this);
}

void LaneConnection::pump_later() {
  if (!std::exchange(waits_for_flush_, true)) set_.to_flush_.push_back(this);
}

std::size_t LaneConnection::poll() {
  const bool came = lane_.receive() > 0;
  if (lane_.end()) host_.on_lane_end(*lane_.end());
  return came ? 1 : 0;
}

/// Returns whether anything went.
bool LaneConnection::flush() {
  const bool went = lane_.flush() > 0;
  if (transfers_.pump())
    pump_later();
  else if (std::exchange(watched_for_writing_, false))
    set_.watch(*this);
  return went;
}

// --- all of them --------------------------------------------------------------------------------------------------------

LaneSet::LaneSet(Poller &poller) : poller_(poller), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {}

void LaneSet::add(LaneConnection &lane) {
  lanes_.push_back(&lane);
  if (watched_) poller_.watch(lane.lane_.fd(), lane);
  if (many_) return watch(lane);
  many_ = lanes_.size() > kReadBlindly;
  if (many_)
    for (LaneConnection *each : lanes_) watch(*each);
}

void LaneSet::remove(LaneConnection &lane) {
  unwatch(lane);
  std::erase(lanes_, &lane);
  std::erase(to_flush_, &lane);
  std::erase(to_finish_, &lane);
}

void LaneSet::watch(LaneConnection &lane) {
  const int fd = lane.lane_.fd();
  epoll_event event{};
  event.events = (many_ ? EPOLLIN : 0u) | (lane.watched_for_writing_ ? EPOLLOUT : 0u);
  event.data.ptr = &lane;
  if (fd < 0) return;  // it is closed
  if (event.events == 0)
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  else if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) != 0)
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
}

/// Before it is closed: one that a forked process has, too, would stay in the sets.
void LaneSet::unwatch(const LaneConnection &lane) {
  const int fd = lane.lane_.fd();
  if (fd < 0) return;  // it is closed
  poller_.unwatch(fd);
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

/// A descriptor that somebody watches costs time with each segment that arrives: so only while somebody sleeps.
void LaneSet::set_watched(bool watched) {
  polls_ = 0;
  if (std::exchange(watched_, watched) == watched) return;
  for (LaneConnection *lane : lanes_) {
    if (lane->lane_.fd() < 0) continue;  // it is closed
    if (watched)
      poller_.watch(lane->lane_.fd(), *lane);
    else
      poller_.unwatch(lane->lane_.fd());
  }
}

/// Few lanes are read at once: to ask for those that have something takes as long as to read one.
std::size_t LaneSet::poll() {
  slept_on_ = false;
  if (!many_ && ++polls_ > kSleepless) set_watched(false);
  std::size_t had = to_flush_.empty() ? 0 : flush();
  if (!many_) {
    for (LaneConnection *lane : lanes_) had += lane->poll();
    return had;
  }
  std::array<epoll_event, 64> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), 0);
  for (int i = 0; i < count; ++i) had += static_cast<LaneConnection *>(events[i].data.ptr)->poll();
  return had;
}

std::size_t LaneSet::flush() {
  std::size_t went = 0;
  for (std::size_t left = to_flush_.size(); left > 0; --left) {
    LaneConnection &lane = *to_flush_.front();
    to_flush_.pop_front();
    lane.waits_for_flush_ = false;
    went += lane.flush() ? 1 : 0;
  }
  return went;
}

void LaneSet::arm() {
  set_watched(true);
  slept_on_ = true;
  for (LaneConnection *lane : to_flush_) {
    lane->lane_.push();
    if (!std::exchange(lane->watched_for_writing_, true)) watch(*lane);
  }
}

/// A completion may call anything, and so finish(), too.
std::size_t LaneSet::finish() {
  std::size_t finished = 0;
  for (std::size_t left = to_finish_.size(); left > 0 && !to_finish_.empty(); --left, ++finished) {
    LaneConnection &lane = *to_finish_.front();
    to_finish_.pop_front();
    lane.waits_for_finish_ = false;
    lane.transfers_.finish();
  }
  return finished;
}

}  // namespace nnti::stream

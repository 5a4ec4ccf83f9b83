// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/stream/held_frames.hpp"

#include <base/thread.hpp>

#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

namespace nnti::stream {
namespace {

constexpr std::chrono::milliseconds kLook{1};
constexpr unsigned kIdleLooks = 16;  // after which it is not watched any more

}  // namespace

std::size_t send_bytes(int socket, std::span<const std::byte> first, std::span<const std::byte> second) {
  ssize_t sent = 0;
  if (second.empty()) {
    sent = ::send(socket, first.data(), first.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  } else {
    std::array<iovec, 2> parts{iovec{const_cast<std::byte *>(first.data()), first.size()},
                               iovec{const_cast<std::byte *>(second.data()), second.size()}};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    sent = ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  if (sent >= 0) return static_cast<std::size_t>(sent);
  return errno == EAGAIN || errno == EINTR || errno == ENOBUFS ? 0 : first.size() + second.size();
}

// --- of one lane --------------------------------------------------------------------------------------------------------

bool HeldFrames::fits(std::size_t size_bytes) const {
  const std::lock_guard guard(mutex_);
  return size_bytes <= kMaxBytes - end_;
}

bool HeldFrames::add(std::span<const std::byte> first, std::span<const std::byte> second) {
  const std::lock_guard guard(mutex_);
  if (!bytes_) bytes_ = std::make_unique_for_overwrite<std::byte[]>(kMaxBytes);
  if (begin_ == end_) seen_ = false;
  for (const auto part : {first, second}) {
    if (!part.empty()) std::memcpy(bytes_.get() + end_, part.data(), part.size());
    end_ += part.size();
  }
  return !std::exchange(watched_, true);
}

std::vector<std::byte> HeldFrames::send() {
  const std::lock_guard guard(mutex_);
  const std::span<const std::byte> bytes(bytes_.get() + begin_, end_ - begin_);
  const std::size_t sent = bytes.empty() ? 0 : send_bytes(socket_, bytes);
  begin_ = end_ = 0;
  return {bytes.begin() + static_cast<std::ptrdiff_t>(sent), bytes.end()};
}

void HeldFrames::forget_socket() {
  const std::lock_guard guard(mutex_);
  socket_ = -1;
  begin_ = end_ = 0;
}

/// False: it needs no watching any more.
bool HeldFrames::push_if_old() {
  const std::lock_guard guard(mutex_);
  if (begin_ == end_) {
    if (++idle_looks_ < kIdleLooks) return true;
    idle_looks_ = 0;
    watched_ = false;
    bytes_.reset();
    begin_ = end_ = 0;
    return false;
  }
  idle_looks_ = 0;
  if (std::exchange(seen_, true)) begin_ += send_bytes(socket_, {bytes_.get() + begin_, end_ - begin_});
  return true;
}

// --- of all lanes -------------------------------------------------------------------------------------------------------

Pusher::~Pusher() {
  if (!thread_.joinable()) return;
  if (process_ != ::getpid()) {
    thread_.detach();
    return;
  }
  {
    const std::lock_guard guard(mutex_);
    stop_ = true;
  }
  something_.notify_one();
  thread_.join();
}

bool Pusher::watch(std::shared_ptr<HeldFrames> held) {
  const std::lock_guard guard(mutex_);
  if (!thread_.joinable() && !start()) return false;
  watched_.push_back(std::move(held));
  something_.notify_one();
  return true;
}

bool Pusher::start() {
  thread_ = nessie::start_thread([this] { run(); });
  process_ = ::getpid();
  return thread_.joinable();
}

void Pusher::run() {
  std::vector<std::shared_ptr<HeldFrames>> looked_at;
  std::unique_lock lock(mutex_);
  while (!stop_) {
    if (watched_.empty()) {
      something_.wait(lock);
      continue;
    }
    something_.wait_for(lock, kLook, [this] { return stop_; });
    looked_at.swap(watched_);
    lock.unlock();
    std::erase_if(looked_at, [](const auto &held) { return !held->push_if_old(); });
    lock.lock();
    watched_.insert(watched_.end(), looked_at.begin(), looked_at.end());
    looked_at.clear();
  }
}

}  // namespace nnti::stream

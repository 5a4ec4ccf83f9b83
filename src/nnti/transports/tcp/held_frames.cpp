// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/tcp/held_frames.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>

namespace nnti::tcp {
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

bool HeldFrames::fits(std::size_t size_bytes) const {
  const std::lock_guard guard(mutex_);
  return size_bytes <= kMaxBytes - end_;
}

bool HeldFrames::add(std::span<const std::byte> first, std::span<const std::byte> second) {
  const std::lock_guard guard(mutex_);
  if (!bytes_) bytes_ = std::make_unique_for_overwrite<std::byte[]>(kMaxBytes);
  const bool is_to_be_watched = begin_to_wait();
  for (const auto part : {first, second}) {
    if (!part.empty()) std::memcpy(bytes_.get() + end_, part.data(), part.size());
    end_ += part.size();
  }
  return is_to_be_watched;
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

void HeldFrames::push() { begin_ += send_bytes(socket_, {bytes_.get() + begin_, end_ - begin_}); }

void HeldFrames::rest() {
  bytes_.reset();
  begin_ = end_ = 0;
}

}  // namespace nnti::tcp

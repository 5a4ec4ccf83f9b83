// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/tcp/stream.hpp"

#include "nnti/bootstrap/congestion.hpp"

#include <fmt/core.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace nnti::tcp {
namespace {

constexpr std::size_t kMostFreeBuffers = 4;
constexpr std::size_t kShortRead = 4096;    ///< for a chunk's header, and not much of the chunk
constexpr unsigned kVainReads = 16;         ///< while a chunk arrives
constexpr std::size_t kSmallFrame = 512;    ///< with its prefix; what is put together before it is sent
constexpr std::size_t kLargestHeld = 2048;  ///< of the frames that wait for others
static_assert(kSmallFrame >= sizeof(Prefix) + kMaxHeaderBytes);
static_assert(ReadBuffers::kBytes >= sizeof(Prefix) + kMaxFrameBytes + kShortRead);

bool overlap(std::span<const std::byte> a, std::span<const std::byte> b) {
  return !a.empty() && !b.empty() && a.data() < b.data() + b.size() && b.data() < a.data() + a.size();
}

void append(std::vector<std::byte> &to, std::span<const std::byte> bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

std::span<const std::byte> from(std::span<const std::byte> bytes, std::size_t offset) {
  return bytes.subspan(std::min(offset, bytes.size()));
}

/// How much of a chunk is written first. The kernel sends segments of 64 KiB: what is a little longer would go as one
/// of them, with which the peer can do nothing before all of it was copied, and a tail. As two halves it overlaps.
std::size_t early_bytes(std::size_t chunk_bytes) {
  constexpr std::size_t kSegment = 64 << 10, kALittle = kSegment / 64, kSome = kSegment / 16;
  return chunk_bytes >= kSegment - kALittle && chunk_bytes <= kSegment + kSome ? chunk_bytes / 2 : chunk_bytes;
}

/// A prefix and what follows it, in one piece.
template <std::size_t kBytes> class Head {
 public:
  Head(std::span<const std::byte> header, std::size_t body_bytes, std::size_t payload_bytes) {
    const Prefix prefix{static_cast<std::uint32_t>(header.size() + body_bytes),
                        static_cast<std::uint32_t>(payload_bytes)};
    std::memcpy(bytes_.data(), &prefix, sizeof prefix);
    add(header);
  }
  void add(std::span<const std::byte> more) {
    if (!more.empty()) std::memcpy(bytes_.data() + size_, more.data(), more.size());
    size_ += more.size();
  }
  std::span<const std::byte> bytes() const { return std::span(bytes_).first(size_); }

 private:
  std::array<std::byte, kBytes> bytes_;
  std::size_t size_ = sizeof(Prefix);
};

}  // namespace

std::unique_ptr<std::byte[]> ReadBuffers::take() {
  if (free_.empty()) return std::make_unique_for_overwrite<std::byte[]>(kBytes);
  auto buffer = std::move(free_.back());
  free_.pop_back();
  return buffer;
}

void ReadBuffers::give_back(std::unique_ptr<std::byte[]> buffer) {
  if (free_.size() < kMostFreeBuffers) free_.push_back(std::move(buffer));
}

Stream::Stream(nessie::Fd socket, StreamEvents &events, StreamCommons &commons)
    : socket_(std::move(socket)),
      events_(events),
      commons_(commons),
      coalescing_(commons.busy_at),
      held_(std::make_shared<HeldFrames>(socket_.get())) {
  const int on = 1;
  ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  congestion::choose(socket_.get());
}

Stream::~Stream() { held_->forget_socket(); }

void Stream::fail(int cause) {
  if (end_) return;
  end_ = Error{Code::kIo,
               cause == 0 ? std::string("the peer ended the connection")
                          : fmt::format("the connection to the peer broke: {}", std::strerror(cause)),
               nessie::Scope::kPeer, cause};
}

// --- sending ------------------------------------------------------------------------------------------------------------

/// Returns how many bytes the socket took, or all.
std::size_t Stream::write(std::span<const std::byte> first, std::span<const std::byte> second) {
  if (end_) return first.size() + second.size();  // to nobody
  return send_bytes(socket_.get(), first, second);
}

void Stream::keep(std::span<const std::byte> first, std::span<const std::byte> second) {
  Unsent unsent;
  append(unsent.bytes, first);
  append(unsent.bytes, second);
  unsent_.push_back(std::move(unsent));
}

void Stream::push() {
  if (!coalescing_.any_waits()) return;
  coalescing_.on_sent(lateness_.on_sent());
  const auto left = held_->send();
  if (!left.empty() && !end_) keep(left, {});
}

void Stream::send_frame(std::span<const std::byte> header, std::span<const std::byte> body, bool may_wait) {
  Head<kSmallFrame> head(header, body.size(), 0);
  if (head.bytes().size() + body.size() <= kSmallFrame) {
    head.add(body);
    body = {};
  }
  const auto first = head.bytes();
  const std::size_t size = first.size() + body.size();
  const bool small = size <= kLargestHeld;
  if (coalescing_.any_waits() && !(small && held_->fits(size))) push();
  const bool others_wait = coalescing_.any_waits();
  const bool waits = coalescing_.on_frame(may_wait && may_hold_ && small && unsent_.empty());
  if (waits && !others_wait) lateness_.on_held(coalescing_.since());
  if (waits || others_wait) {
    if (held_->add(first, body) && !commons_.pusher.watch(held_)) may_hold_ = false;
    if (!waits || !may_hold_) push();
    return;
  }
  const std::size_t sent = unsent_.empty() ? write(first, body) : 0;
  if (sent == first.size() + body.size()) return;
  keep(from(first, sent), from(body, sent - std::min(sent, first.size())));
}

bool Stream::send_chunk(std::span<const std::byte> header, std::span<const std::byte> bytes, std::uint64_t id) {
  const Head<sizeof(Prefix) + kMaxHeaderBytes> head(header, 0, bytes.size());
  const auto first = head.bytes();
  push();
  const auto early = bytes.first(early_bytes(bytes.size()));
  std::size_t sent = unsent_.empty() ? write(first, early) : 0;
  if (sent == first.size() + early.size() && sent < first.size() + bytes.size())
    sent += write(bytes.subspan(early.size()), {});
  if (sent == first.size() + bytes.size()) return true;
  keep(from(first, sent), {});
  unsent_.back().payload = from(bytes, sent - std::min(sent, first.size()));
  unsent_.back().id = id;
  unsent_.back().chunk = true;
  ++unsent_chunks_;
  return false;
}

void Stream::consume(Unsent &unsent, std::size_t sent) {
  const std::size_t of_bytes = std::min(sent, unsent.bytes.size());
  unsent.bytes.erase(unsent.bytes.begin(), unsent.bytes.begin() + static_cast<std::ptrdiff_t>(of_bytes));
  unsent.payload = unsent.payload.subspan(sent - of_bytes);
}

std::size_t Stream::flush() {
  std::size_t all = 0;
  if (coalescing_.any_waits() && coalescing_.due()) push();
  while (!unsent_.empty()) {
    Unsent &unsent = unsent_.front();
    const std::size_t sent = unsent.bytes.empty() ? write(unsent.payload, {}) : write(unsent.bytes, unsent.payload);
    all += sent;
    consume(unsent, sent);
    if (!unsent.bytes.empty() || !unsent.payload.empty()) break;
    const bool chunk = unsent.chunk;
    const std::uint64_t id = unsent.id;
    unsent_.pop_front();
    if (!chunk) continue;
    --unsent_chunks_;
    events_.on_chunk_sent(id);
  }
  return all;
}

bool Stream::delivered() const {
  int left = 0;
  return !has_unsent() && (end_ || ::ioctl(socket_.get(), SIOCOUTQ, &left) != 0 || left == 0);
}

void Stream::copy_unsent(std::span<const std::byte> memory) {
  for (Unsent &unsent : unsent_) {
    if (!overlap(unsent.payload, memory)) continue;
    append(unsent.bytes, unsent.payload);
    unsent.payload = {};
  }
}

void Stream::close() {
  push();
  held_->forget_socket();
  if (!end_) end_ = Error{Code::kCancelled, "the connection was closed"};
  unsent_.clear();
  unsent_chunks_ = 0;
  discard_arriving();
  socket_.reset();
}

// --- receiving ----------------------------------------------------------------------------------------------------------

/// Where chunks came last, not much is read before it is known where it goes.
/// Into the place of the chunk that is arriving, and what comes after it into the buffer.
std::size_t Stream::read() {
  if (!buffer_) buffer_ = commons_.read_buffers.take();
  const std::size_t room = chunks_come_ ? kShortRead : ReadBuffers::kBytes - filled_;
  std::array<iovec, 2> parts{iovec{arriving_.place.data(), arriving_.place.size()},
                             iovec{buffer_.get() + filled_, room}};
  ssize_t got = 0;
  if (arriving_.place.empty()) {
    got = ::recv(socket_.get(), parts[1].iov_base, parts[1].iov_len, MSG_DONTWAIT);
  } else {
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    got = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT);
  }
  if (got == 0) fail(0);
  if (got < 0 && errno != EAGAIN && errno != EINTR) fail(errno);
  return got < 0 ? 0 : static_cast<std::size_t>(got);
}

std::size_t Stream::receive() {
  if (end_) return 0;
  came_ = 0;
  std::size_t got = read_once();
  for (unsigned vain = 0; vain < kVainReads && !arriving_.place.empty() && !end_;) {
    const std::size_t more = read_once();
    got += more;
    if (more == 0) ++vain;
  }
  coalescing_.on_received(came_);
  return got;
}

std::size_t Stream::read_once() {
  const std::size_t got = read();
  const std::size_t in_place = std::min(got, arriving_.place.size());
  if (in_place > 0) {
    arriving_.place = arriving_.place.subspan(in_place);
    arriving_.left -= in_place;
    end_chunk_if_whole();
  }
  filled_ += got - in_place;
  while (!end_ && begin_ < filled_ && take_unit()) {}
  compact();
  if (filled_ == 0) commons_.read_buffers.give_back(std::move(buffer_));
  return got;
}

void Stream::end_chunk_if_whole() {
  if (arriving_.left == 0 && std::exchange(arriving_.wanted, false)) events_.on_chunk_end();
}

/// Of the chunk that is arriving. Returns how many bytes that were.
std::size_t Stream::take_payload(std::span<const std::byte> bytes) {
  const std::size_t size = std::min(bytes.size(), arriving_.left);
  if (!arriving_.place.empty()) {
    std::memcpy(arriving_.place.data(), bytes.data(), size);
    arriving_.place = arriving_.place.subspan(size);
  }
  arriving_.left -= size;
  end_chunk_if_whole();
  return size;
}

/// Cuts one piece off what is in the buffer. False: there is none yet.
bool Stream::take_unit() {
  const std::span<const std::byte> bytes(buffer_.get() + begin_, filled_ - begin_);
  if (arriving_.left > 0) {
    begin_ += take_payload(bytes);
    return true;
  }
  Prefix prefix;
  if (bytes.size() < sizeof prefix) return false;
  std::memcpy(&prefix, bytes.data(), sizeof prefix);
  const bool chunk = prefix.payload_bytes > 0;
  if (prefix.size_bytes == 0 || prefix.size_bytes > (chunk ? kMaxHeaderBytes : kMaxFrameBytes) ||
      prefix.payload_bytes > kMaxChunkBytes) {
    end_ = Error{Code::kBadMessage, "the peer sends what cannot be read", nessie::Scope::kPeer};
    return false;
  }
  chunks_come_ = chunk;
  if (bytes.size() < sizeof prefix + prefix.size_bytes) return false;
  const auto unit = bytes.subspan(sizeof prefix, prefix.size_bytes);
  begin_ += sizeof prefix + prefix.size_bytes;
  if (chunk) {
    const auto place = events_.on_chunk(unit, prefix.payload_bytes);
    arriving_ = {place, prefix.payload_bytes, !place.empty()};
  } else {
    ++came_;
    events_.on_frame(unit);
  }
  return true;
}

void Stream::compact() {
  if (begin_ > 0 && begin_ < filled_) std::memmove(buffer_.get(), buffer_.get() + begin_, filled_ - begin_);
  filled_ -= begin_;
  begin_ = 0;
}

}  // namespace nnti::tcp

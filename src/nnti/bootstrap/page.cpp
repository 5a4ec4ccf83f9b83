// SPDX-License-Identifier: BSD-3-Clause
// Pages of the bootstrap conversation, and the socket that carries them. Layout: src/nnti/README.md.
#include "nnti/bootstrap/bootstrap.hpp"

#include <fmt/core.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace nnti::bootstrap {
namespace {

constexpr std::uint32_t kMagic = 0x4e4e5449;  // "NNTI"
constexpr std::size_t kHeaderBytes = 12;
/// Sets of descriptors. A read brings one at most, and is made only while no page is whole: one set is then of the page
/// that has begun.
constexpr std::size_t kMostReceived = 2;

void append_big_endian(std::vector<std::byte> &out, std::uint64_t value, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) out.push_back(static_cast<std::byte>(value >> shift));
}

std::uint32_t read_big_endian(const std::byte *at, int bytes) {
  std::uint32_t value = 0;
  for (int i = 0; i < bytes; ++i) value = value << 8 | static_cast<std::uint32_t>(at[i]);
  return value;
}

Error bad_page(std::string_view why) {
  return {nessie::Code::kBadMessage, fmt::format("not a page of NNTI: {}", why), nessie::Scope::kPeer};
}

Error lost(std::string_view what, int cause) {
  auto message = cause == 0 ? std::string(what) : fmt::format("{}: {}", what, std::strerror(cause));
  return {nessie::Code::kPeerLost, std::move(message), nessie::Scope::kPeer, cause};
}

/// False: this process has no descriptors left.
bool keep(std::span<const int> descriptors, std::vector<nessie::Fd> &kept) {
  for (const int descriptor : descriptors) {
    kept.push_back(nessie::duplicate(descriptor));
    if (!kept.back()) return false;
  }
  return true;
}

}  // namespace

Error no_descriptors() {
  return {nessie::Code::kNoMemory,
          "this process has as many descriptors open as it may (ulimit -n): close some, or raise the limit",
          nessie::Scope::kOperation, EMFILE};
}

void encode_page(PageType type, std::size_t descriptor_count, std::span<const std::byte> body,
                 std::vector<std::byte> &out) {
  append_big_endian(out, kMagic, 4);
  append_big_endian(out, static_cast<std::uint16_t>(type), 2);
  append_big_endian(out, descriptor_count, 2);
  append_big_endian(out, body.size(), 4);
  out.insert(out.end(), body.begin(), body.end());
}

void PageDecoder::feed(std::span<const std::byte> bytes) {
  buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(begin_));
  begin_ = 0;
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

/// Pages are rare: a connection at rest keeps no memory for them.
void PageDecoder::forget() {
  std::vector<std::byte>().swap(buffer_);
  begin_ = 0;
}

Result<std::optional<Page>> PageDecoder::next() {
  auto rest = std::span<const std::byte>(buffer_).subspan(begin_);
  if (rest.size() < kHeaderBytes) return std::optional<Page>();
  if (read_big_endian(rest.data(), 4) != kMagic) return bad_page("it does not begin with 'NNTI'");
  auto type = read_big_endian(rest.data() + 4, 2), descriptors = read_big_endian(rest.data() + 6, 2);
  auto size = read_big_endian(rest.data() + 8, 4);
  if (type < 1 || type > static_cast<std::uint32_t>(PageType::kTransport))
    return bad_page(fmt::format("type {}", type));
  if (descriptors > kMaxDescriptors) return bad_page(fmt::format("{} descriptors", descriptors));
  if (size > kMaxPageBytes) return bad_page(fmt::format("{} bytes", size));
  if (rest.size() < kHeaderBytes + size) return std::optional<Page>();
  Page page;
  page.type = static_cast<PageType>(type);
  page.descriptor_count = descriptors;
  auto body = rest.subspan(kHeaderBytes, size);
  page.body.assign(body.begin(), body.end());
  begin_ += kHeaderBytes + size;
  if (begin_ == buffer_.size()) forget();
  return std::optional<Page>(std::move(page));
}

void PageSocket::send(PageType type, std::span<const std::byte> body, std::span<const int> descriptors) {
  Unsent unsent;
  encode_page(type, descriptors.size(), body, unsent.bytes);
  if (unsent_.empty()) (void)write_some(unsent, descriptors).ok();
  if (unsent.sent == unsent.bytes.size()) return;
  if (unsent.sent == 0 && !keep(descriptors, unsent.descriptors)) {
    unsent = {};
    encode_page(type, 0, body, unsent.bytes);
  }
  unsent_.push_back(std::move(unsent));
  // A broken socket shows in receive(), after what the peer had still to say.
  (void)flush().ok();
}

Status PageSocket::flush() {
  while (!unsent_.empty()) {
    std::vector<int> descriptors;
    for (const auto &descriptor : unsent_.front().descriptors) descriptors.push_back(descriptor.get());
    auto progressed = write_some(unsent_.front(), descriptors);
    if (!progressed.ok()) return progressed.error();
    if (!*progressed) break;
    if (unsent_.front().sent == unsent_.front().bytes.size()) unsent_.pop_front();
  }
  return {};
}

Result<bool> PageSocket::write_some(Unsent &unsent, std::span<const int> descriptors) {
  iovec bytes{unsent.bytes.data() + unsent.sent, unsent.bytes.size() - unsent.sent};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(kMaxDescriptors * sizeof(int))> control{};
  if (!descriptors.empty() && unsent.sent == 0) {  // they go with the first byte
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    auto *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
  }
  auto sent = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOBUFS || errno == ETOOMANYREFS)) return false;
  if (sent < 0) cause_ = cause_ == 0 ? errno : cause_;
  if (sent < 0) return lost("the peer cannot be written to", cause_);
  unsent.sent += static_cast<std::size_t>(sent);
  unsent.descriptors.clear();
  return true;
}

Result<bool> PageSocket::read_some() {
  std::array<std::byte, 4096> bytes;
  iovec target{bytes.data(), bytes.size()};
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(2 * kMaxDescriptors * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &target;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  auto got = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (got < 0) return lost("the peer's connection broke", errno);
  Received received{{}, (message.msg_flags & MSG_CTRUNC) != 0};
  for (auto *header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    auto count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(header) + i * sizeof(int), sizeof descriptor);
      received.descriptors.emplace_back(descriptor);
    }
  }
  if (got == 0 && cause_ != 0 && cause_ != EPIPE) return lost("the peer cannot be reached", cause_);
  if (got == 0) return lost("the peer closed the connection", 0);
  if (received.some_are_lost || !received.descriptors.empty()) received_.push_back(std::move(received));
  if (received_.size() > kMostReceived) return bad_page("too many descriptors");
  decoder_.feed(std::span(bytes).first(static_cast<std::size_t>(got)));
  return true;
}

std::size_t PageSocket::descriptors() const {
  std::size_t count = socket_ ? 1 : 0;
  for (const auto &received : received_) count += received.descriptors.size();
  return count;
}

Status PageSocket::take_descriptors(Page &page) {
  if (page.descriptor_count == 0) return {};
  if (received_.empty()) return bad_page("its descriptors are missing");
  auto received = std::move(received_.front());
  received_.erase(received_.begin());
  if (received_.empty()) received_.shrink_to_fit();
  const auto count = received.descriptors.size();
  if (count > page.descriptor_count || (count < page.descriptor_count && !received.some_are_lost))
    return bad_page(fmt::format("{} descriptors, not {}", count, page.descriptor_count));
  page.descriptors = std::move(received.descriptors);
  page.descriptors.resize(page.descriptor_count);
  return {};
}

Result<std::optional<Page>> PageSocket::receive() {
  for (;;) {
    auto page = decoder_.next();
    if (!page.ok()) return page.error();
    if (*page) {
      if (auto taken = take_descriptors(**page); !taken.ok()) return taken.error();
      return page;
    }
    auto read = read_some();
    if (!read.ok()) return read.error();
    if (!*read) return std::optional<Page>();
  }
}

}  // namespace nnti::bootstrap

// SPDX-License-Identifier: BSD-3-Clause
// For tests: a socket, for a hostile peer (framed/hostile_peer.hpp).
#pragma once

#include "nnti/framed/hostile_peer.hpp"
#include "nnti/transports/tcp/transport.hpp"

#include <array>

namespace nnti::tcp {

using framed::Bytes;

class RawTcp final : public framed::RawPeer {
 public:
  Bytes hello() override { return encode_hello(Hello::Kind::kConnection, framed::kHostileToken); }
  void meet(std::span<const std::byte> theirs, const framed::Bootstrap &bootstrap) override {
    token = decode_hello(theirs)->token;
    socket_ = bootstrap(encode_hello(Hello::Kind::kStream, token));
  }
  void send_frame(std::span<const std::byte> bytes) override {
    send({static_cast<std::uint32_t>(bytes.size()), 0}, bytes);
  }
  void send_chunk(const framed::ChunkHeader &header, std::span<const std::byte> bytes) override {
    send({sizeof header, static_cast<std::uint32_t>(bytes.size())}, framed::raw(header));
    unsent_.insert(unsent_.end(), bytes.begin(), bytes.end());
    progress();
  }
  void send(Prefix prefix, std::span<const std::byte> bytes) {
    const auto head = framed::raw(prefix);
    unsent_.insert(unsent_.end(), head.begin(), head.end());
    unsent_.insert(unsent_.end(), bytes.begin(), bytes.end());
    progress();
  }
  void progress() override {
    const auto sent = ::send(socket_.get(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) unsent_.erase(unsent_.begin(), unsent_.begin() + sent);
    while (!(hold_chunks && !chunks.empty()) && receive()) {}
  }

 private:
  /// Reads once, and takes what is whole. False: nothing came.
  bool receive() {
    std::array<std::byte, 64 << 10> bytes;
    const auto got = ::recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got <= 0) return false;
    received_.insert(received_.end(), bytes.begin(), bytes.begin() + got);
    while (take_unit()) {}
    return true;
  }
  bool take_unit() {
    Prefix prefix;
    if (received_.size() < sizeof prefix) return false;
    std::memcpy(&prefix, received_.data(), sizeof prefix);
    const std::size_t head = sizeof prefix + prefix.size_bytes, whole = head + prefix.payload_bytes;
    if (prefix.payload_bytes == 0 && received_.size() >= whole)
      frames.emplace_back(received_.begin() + sizeof prefix, received_.begin() + static_cast<std::ptrdiff_t>(whole));
    if (received_.size() < whole) return false;
    if (prefix.payload_bytes != 0)
      std::memcpy(&chunks.emplace_back(), received_.data() + sizeof prefix, sizeof(framed::ChunkHeader));
    received_.erase(received_.begin(), received_.begin() + static_cast<std::ptrdiff_t>(whole));
    return true;
  }

  nessie::Fd socket_;
  Bytes unsent_, received_;
};

inline framed::HostileTransport hostile_transport() {
  framed::HostileTransport transport{"tcp", {}, nullptr, tcp::open};
  transport.config.set("nnti.tcp.address", "127.0.0.1");
  transport.make = [] { return std::unique_ptr<framed::RawPeer>(std::make_unique<RawTcp>()); };
  transport.holds_chunks = false;
  return transport;
}

}  // namespace nnti::tcp

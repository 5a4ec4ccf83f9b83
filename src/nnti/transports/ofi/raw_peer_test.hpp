// SPDX-License-Identifier: BSD-3-Clause
// For tests: libfabric's messages, for a hostile peer (framed/hostile_peer.hpp).
#pragma once

#include "nnti/framed/hostile_peer.hpp"
#include "nnti/transports/ofi/transport.hpp"

#include <array>
#include <deque>

namespace nnti::ofi {

using framed::Bytes;

inline nessie::Config hostile_config() {
  nessie::Config config;
  config.set("nnti.ofi.provider", "tcp;ofi_rxm");
  config.set("nnti.ofi.address", "127.0.0.1");
  return config;
}

class RawOfi final : public framed::RawPeer {
 public:
  RawOfi() : fabric_(std::move(*Fabric::open(hostile_config()))) {
    for (std::size_t i = 0; i < kReceives; ++i) receive(receives_.emplace_back());
  }
  Bytes hello() override { return encode_hello({framed::kHostileToken, fabric_->provider(), fabric_->name()}); }
  void meet(std::span<const std::byte> theirs, const framed::Bootstrap &) override {
    const auto hello = decode_hello(theirs);
    token = hello->token;
    server_ = *fabric_->add_peer(hello->name);
  }
  void send_frame(std::span<const std::byte> bytes) override {
    auto &message = sent_.emplace_back();
    message.bytes.assign(bytes.begin(), bytes.end());
    progress();
  }
  std::size_t max_frame_bytes() const override { return kMaxPostedFrameBytes; }
  bool may_lose_frames() const override { return true; }
  void progress() override {
    while (begun_ < sent_.size() && send(sent_[begun_])) ++begun_;
    std::array<fi_cq_msg_entry, 8> entries;
    const auto count = fi_cq_read(fabric_->queue(), entries.data(), entries.size());
    if (count == -FI_EAVAIL) {
      fi_cq_err_entry error{};
      fi_cq_readerr(fabric_->queue(), &error, 0);
    }
    for (ssize_t i = 0; i < count; ++i) {
      auto &message = *static_cast<Message *>(entries[static_cast<std::size_t>(i)].op_context);
      if (!message.received) continue;
      const auto size = static_cast<std::ptrdiff_t>(entries[static_cast<std::size_t>(i)].len);
      frames.emplace_back(message.bytes.begin(), message.bytes.begin() + size);
      receive(message);
    }
  }

 private:
  static constexpr std::size_t kReceives = 64;
  struct Message {
    fi_context2 context{};  ///< first: libfabric's pointer to it is ours
    Bytes bytes;
    bool received = false;
  };
  void receive(Message &message) {
    message.received = true;
    message.bytes.resize(kMaxPostedFrameBytes);
    fi_recv(fabric_->endpoint(), message.bytes.data(), message.bytes.size(), nullptr, FI_ADDR_UNSPEC, &message);
  }
  bool send(Message &message) {
    return fi_send(fabric_->endpoint(), message.bytes.data(), message.bytes.size(), nullptr, server_, &message) == 0;
  }

  std::unique_ptr<Fabric> fabric_;
  std::deque<Message> receives_, sent_;
  std::size_t begun_ = 0;
  fi_addr_t server_ = FI_ADDR_UNSPEC;
};

inline framed::HostileTransport hostile_transport() {
  framed::HostileTransport transport{"ofi", hostile_config(), nullptr, ofi::open};
  transport.in_chunks = transport.holds_chunks = false;
  if (auto fabric = Fabric::open(transport.config); !fabric.ok())
    transport.why = fabric.error().message;
  else
    transport.make = [] { return std::unique_ptr<framed::RawPeer>(std::make_unique<RawOfi>()); };
  return transport;
}

}  // namespace nnti::ofi

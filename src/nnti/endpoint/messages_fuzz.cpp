// SPDX-License-Identifier: BSD-3-Clause
// Kinds (one byte each) and messages, as an endpoint over shm gets them from a peer.
#include "nnti/endpoint/impl.hpp"

#include <base/testing/fuzz.hpp>

#include <algorithm>
#include <array>

namespace {

using namespace nnti;

/// A connection that maps nothing and takes every message.
struct Sink final : Connection, Transport, EventSink, TransportEvents {
  Transport &transport() override { return *this; }
  std::string explain() const override { return {}; }
  std::size_t max_message_bytes() const override { return 512; }
  bool try_send(MessageKind, std::span<const std::byte>) override { return true; }
  void get(const RemoteBuffer &, std::uint64_t, std::span<std::byte>, Completion &done) override {
    done.on_complete(Error{Code::kRefused, ""});
  }
  void put(const RemoteBuffer &, std::uint64_t, std::span<const std::byte>, Completion &done) override {
    done.on_complete(Error{Code::kRefused, ""});
  }
  void close() override {}
  std::string_view name() const override { return "sink"; }
  std::string url() const override { return {}; }
  Status can_reach(const nessie::Url &) const override { return {}; }
  Result<std::unique_ptr<Connecting>> connect(const nessie::Url &, Deadline) override {
    return Error{Code::kUnsupported, ""};
  }
  Result<std::unique_ptr<TransportMemory>> register_memory(const MemoryRegion &) override {
    return Error{Code::kUnsupported, ""};
  }
  std::optional<MemoryRegion> find_memory(const RemoteBuffer &buffer) const override {
    if (buffer.key % 2 != 0) return std::nullopt;
    return MemoryRegion{{const_cast<std::byte *>(memory.data()), memory.size()}, Rights::kRemoteAtomic, -1};
  }
  std::size_t progress() override { return 0; }
  bool ready() override { return false; }
  int wait_fd() const override { return -1; }
  bool arm() override { return true; }
  void disarm(bool) override {}
  void on_message(PeerId, std::span<const std::byte>) override {}
  void on_peer_lost(PeerId, const Error &) override {}
  void accepted(Connection &) override {}
  void message(Connection &, MessageKind, std::span<const std::byte>) override {}
  void lost(Connection &, Loss, const Error &) override {}
  alignas(8) std::array<std::byte, 256> memory{};
};

void protocol_messages(std::span<const std::byte> bytes) {
  Sink sink;
  Endpoint::Impl endpoint({}, sink);
  endpoint.add_peer(sink);
  while (bytes.size() > 1 && endpoint.find(sink.peer) != nullptr) {
    auto kind = static_cast<MessageKind>(static_cast<std::uint8_t>(bytes[0]) & kMaxMessageKind);
    auto size = std::min<std::size_t>(bytes.size() - 1, 64 + static_cast<std::size_t>(bytes[1]));
    endpoint.message(sink, kind, bytes.subspan(1, size));
    bytes = bytes.subspan(1 + size);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  protocol_messages(std::as_bytes(std::span(data, size)));
  return 0;
}

/// One byte of kind, then the message.
std::vector<nessie::fuzz::Bytes> nessie::fuzz::seeds() {
  std::vector<Bytes> corpus;
  for (std::size_t size : {4u, 16u, 24u, 48u, 56u, 64u, 500u})
    for (std::uint8_t kind = 0; kind <= kMaxMessageKind; ++kind) {
      corpus.emplace_back(size + 1);
      corpus.back()[0] = static_cast<std::byte>(kind);
    }
  return corpus;
}

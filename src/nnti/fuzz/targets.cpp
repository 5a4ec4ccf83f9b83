// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/fuzz/fuzz.hpp"

#include "nnti/bootstrap.hpp"
#include "nnti/endpoint_impl.hpp"
#include "nnti/transports/shm/relay.hpp"
#include "nnti/transports/shm/table.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <vector>

namespace nnti::fuzz {
namespace {

using namespace shm;

struct IgnoredCompletion final : Completion {
  void on_complete(Status) override {}
};

std::pair<Fd, Fd> socket_pair() {
  int ends[2] = {-1, -1};
  (void)::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends);
  return {Fd(ends[0]), Fd(ends[1])};
}

void write_all(const Fd &socket, std::span<const std::byte> bytes) {
  [[maybe_unused]] auto sent = ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

constexpr std::uint64_t kSlots = 64;

/// One side's shared memory, made once: a segment with mailboxes, and a table with one registered buffer.
struct World final : Bounces {
  std::vector<std::byte> segment = std::vector<std::byte>(segment_bytes(kSlots) + kSlotBytes);
  std::vector<std::byte> bounce = std::vector<std::byte>(kBounceBytes);
  Result<OwnTable> table = OwnTable::make();
  std::array<std::byte, 256> memory{};
  std::byte *mine() override { return bounce.data(); }
  std::byte *theirs() override { return bounce.data(); }
  std::byte *aligned_segment() {
    auto address = reinterpret_cast<std::uintptr_t>(segment.data());
    return segment.data() + (kSlotBytes - address % kSlotBytes) % kSlotBytes;
  }
  World() {
    if (table.ok()) (void)table->add({memory, Rights::kReadWrite, -1}).ok();
  }
};

}  // namespace

void decode_pages(std::span<const std::byte> bytes) {
  bootstrap::PageDecoder decoder;
  while (!bytes.empty()) {
    auto piece = std::min<std::size_t>(bytes.size(), 1 + static_cast<std::size_t>(bytes[0]));
    decoder.feed(bytes.first(piece));
    bytes = bytes.subspan(piece);
    for (;;) {
      auto page = decoder.next();
      if (!page.ok()) return;
      if (!*page) break;
    }
  }
}

void shake_hands(std::span<const std::byte> bytes) {
  nessie::Credential credential;
  auto [ours, theirs] = socket_pair();
  write_all(theirs, bytes);
  theirs.reset();
  bootstrap::Connector connector(std::move(ours), "shm", credential, {});
  (void)connector.advance();
}

void read_ring(std::span<const std::byte> bytes) {
  static World world;
  if (!world.table.ok()) return;
  std::ranges::fill(world.segment, std::byte{});
  auto mine = mailbox_at(world.aligned_segment(), 0, kSlots), theirs = mailbox_at(world.aligned_segment(), 1, kSlots);
  auto count = std::min(bytes.size(), kSlots * kSlotBytes);
  std::memcpy(static_cast<void *>(theirs.ring), bytes.data(), count);
  if (count >= 8) {
    std::uint64_t claimed;
    std::memcpy(&claimed, bytes.data() + count - 8, 8);
    mine.control->consumed.store(claimed % 3 == 0 ? claimed : 0);  // the peer also says what it has read
  }
  RingWriter out(mine);
  RingReader in(theirs);
  Relay relay(world, world.table->table(), out);
  IgnoredCompletion ignored;
  std::array<std::byte, 64> local{};
  relay.start({RemoteBuffer{}, 0, local.size(), local.data(), nullptr, &ignored});
  std::array<std::byte, kMaxInPlaceBytes> buffer;
  for (int i = 0; i < 1000 && in.ready(); ++i) {
    bool broken = false;
    relay.pump(broken);
    auto message = in.read(buffer);
    if (broken || !message) break;
    in.give_back();
    if (message->kind != Kind::kMessage &&
        !relay.on_message(message->kind, std::span(buffer).first(message->size_bytes)))
      break;
  }
  relay.abandon({Code::kPeerLost, "done"});
}

namespace {

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

}  // namespace

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

}  // namespace nnti::fuzz

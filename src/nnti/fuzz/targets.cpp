// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/fuzz/fuzz.hpp"

#include "nnti/bootstrap/bootstrap.hpp"
#include "nnti/endpoint/impl.hpp"
#include "nnti/transports/shm/relay.hpp"
#include "nnti/transports/shm/shared_queue.hpp"
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

std::pair<nessie::Fd, nessie::Fd> socket_pair() {
  int ends[2] = {-1, -1};
  (void)::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends);
  return {nessie::Fd(ends[0]), nessie::Fd(ends[1])};
}

void write_all(const nessie::Fd &socket, std::span<const std::byte> bytes) {
  [[maybe_unused]] auto sent = ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

constexpr std::uint64_t kSlots = 64;

/// One side's shared memory, made once: a ring in each direction, and a table with one registered buffer.
struct World final : RelayLink {
  std::vector<Slot> ours = std::vector<Slot>(kSlots), theirs_ring = std::vector<Slot>(kSlots);
  std::atomic<std::uint64_t> we_consumed{0}, they_consumed{0};
  std::atomic<std::uint32_t> we_starve{0}, they_starve{0};
  RingWriter *out = nullptr;
  std::vector<std::byte> bounce = std::vector<std::byte>(kBounceBytes);
  Result<OwnTable> table = OwnTable::make();
  std::array<std::byte, 256> memory{};
  std::byte *mine() override { return bounce.data(); }
  std::byte *theirs() override { return bounce.data(); }
  Outcome write(Kind kind, std::span<const std::byte> message) override { return out->write(kind, message); }
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
  std::memset(static_cast<void *>(world.theirs_ring.data()), 0, ring_bytes(kSlots));
  auto count = std::min<std::size_t>(bytes.size(), ring_bytes(kSlots));
  std::memcpy(static_cast<void *>(world.theirs_ring.data()), bytes.data(), count);
  if (count >= 8) {
    std::uint64_t claimed;
    std::memcpy(&claimed, bytes.data() + count - 8, 8);
    world.they_consumed.store(claimed % 3 == 0 ? claimed : 0);  // the peer also says what it has read
  }
  RingWriter out({&world.they_consumed, &world.we_starve, world.ours.data(), kSlots});
  RingReader in({&world.we_consumed, &world.they_starve, world.theirs_ring.data(), kSlots});
  world.out = &out;
  Relay relay(world, world.table->table());
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

/// The bytes are a queue that others write; in between we write into it ourselves.
void read_queue(std::span<const std::byte> bytes) {
  constexpr std::uint64_t kEntries = 16;
  alignas(kQueueEntryBytes) static std::array<std::byte, queue_bytes(kEntries)> memory;
  static const auto table = std::make_unique<EndpointTable>();
  memory.fill({});
  std::memcpy(memory.data(), bytes.data(), std::min(bytes.size(), memory.size()));
  table->queue_consumed.store(0);
  table->queue_bound.store(kEntries / 2);
  const auto queue = queue_at(memory.data(), kEntries, *table);
  std::atomic<std::uint32_t> starves{0};
  QueueWriter writer(queue, 3, &starves);
  QueueReader reader(queue);
  std::array<std::byte, kMaxInPlaceBytes> buffer;
  for (int i = 0; i < 100; ++i) {
    if (i % 3 == 0) (void)writer.write(Kind::kMessage, std::span(buffer).first(24));
    auto head = reader.look();
    (void)reader.end_of(head.seat);
    if (head.look == QueueReader::Look::kBroken) break;
    if (head.look == QueueReader::Look::kClaimed) reader.skip();
    if (head.look == QueueReader::Look::kPublished && !reader.read(buffer)) reader.skip();
    if (i % 5 == 0) queue.consumed->store(reader.next());
  }
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

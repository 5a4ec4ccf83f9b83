// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/fuzz/fuzz.hpp"

#include "nnti/bootstrap.hpp"
#include "nnti/transports/shm/relay.hpp"
#include "nnti/transports/shm/table.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

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

/// One side's shared memory, made once: a segment with lanes, and a table with one registered buffer.
struct World {
  std::unique_ptr<Segment> segment = std::make_unique<Segment>();
  Result<OwnTable> table = OwnTable::make();
  std::array<std::byte, 256> memory{};
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
  auto &mine = world.segment->lanes[0], &theirs = world.segment->lanes[1];
  std::memset(static_cast<void *>(world.segment.get()), 0, offsetof(Lane, bounce));
  std::memset(static_cast<void *>(&theirs), 0, offsetof(Lane, bounce));
  auto count = std::min(bytes.size(), kRingBytes);
  std::memcpy(static_cast<void *>(theirs.ring), bytes.data(), count);
  if (count >= 8) {
    std::uint64_t claimed;
    std::memcpy(&claimed, bytes.data() + count - 8, 8);
    mine.consumed.store(claimed % 3 == 0 ? claimed : 0);  // the peer also says what it has read
  }
  RingWriter out(mine);
  RingReader in(theirs);
  Relay relay(mine, theirs, world.table->table(), out);
  IgnoredCompletion ignored;
  std::array<std::byte, 64> local{};
  relay.start({RemoteBuffer{}, 0, local.size(), local.data(), nullptr, &ignored});
  std::array<std::byte, kMaxMessageBytes> buffer;
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

}  // namespace nnti::fuzz

// SPDX-License-Identifier: BSD-3-Clause
// A ring's contents, then what a connection does with them: reads, and answers relayed requests.
#include "nnti/transports/shm/relay.hpp"
#include "nnti/transports/shm/ring.hpp"
#include "nnti/transports/shm/table.hpp"

#include <base/testing/fuzz.hpp>

#include <algorithm>
#include <array>
#include <cstring>

namespace {

using namespace nnti;
using namespace nnti::shm;
using nessie::fuzz::Bytes;

struct IgnoredCompletion final : Completion {
  void on_complete(Status) override {}
};

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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  read_ring(std::as_bytes(std::span(data, size)));
  return 0;
}

std::vector<nessie::fuzz::Bytes> nessie::fuzz::seeds() {
  std::vector<Bytes> corpus;
  for (std::size_t size : {0u, 24u, 56u, 57u, 896u}) {
    alignas(kSlotBytes) static std::array<std::byte, ring_bytes(kSlots)> slots;
    slots.fill({});
    std::atomic<std::uint64_t> consumed{0};
    std::atomic<std::uint32_t> starves{0};
    const Mailbox mailbox{&consumed, &starves, reinterpret_cast<Slot *>(slots.data()), kSlots};
    RingWriter writer(mailbox);
    for (auto kind : {Kind::kMessage, Kind::kRelayGet, Kind::kRelayPut, Kind::kRelayDone}) {
      (void)writer.write(kind, Bytes(size));
      (void)writer.write(kind, Bytes(24));
      (void)writer.write(kind, Bytes(4));
    }
    corpus.emplace_back(slots.begin(), slots.end());
  }
  return corpus;
}

// SPDX-License-Identifier: BSD-3-Clause
// Runs the fuzz targets over well-formed inputs and 50,000 mutations of them, the same ones each time.
#include "nnti/fuzz/fuzz.hpp"

#include "nnti/bootstrap/bootstrap.hpp"
#include "nnti/channel/wire.hpp"
#include "nnti/transports/shm/ring.hpp"
#include "nnti/transports/shm/shared_queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

namespace {

using Bytes = std::vector<std::byte>;
using Target = void (*)(std::span<const std::byte>);
using nnti::bootstrap::PageType;

constexpr int kMutations = 50'000;

std::vector<Bytes> conversations() {
  std::vector<Bytes> corpus;
  Bytes all;
  for (auto type : {PageType::kHello, PageType::kChallenge, PageType::kProof, PageType::kWelcome, PageType::kRefusal,
                    PageType::kTransport}) {
    Bytes page;
    nnti::bootstrap::encode_page(type, 0, Bytes(50, std::byte{1}), page);
    corpus.push_back(page);
    all.insert(all.end(), page.begin(), page.end());
  }
  corpus.push_back(all);
  return corpus;
}

std::vector<Bytes> rings() {
  using namespace nnti::shm;
  std::vector<Bytes> corpus;
  constexpr std::uint64_t kSlots = 64;
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

/// A queue of 16 entries, with its control.
std::vector<Bytes> queues() {
  using namespace nnti::shm;
  constexpr std::uint64_t kEntries = 16;
  std::vector<Bytes> corpus;
  for (std::size_t size : {0u, 4u, 24u, 112u}) {
    alignas(kQueueEntryBytes) static std::array<std::byte, queue_bytes(kEntries)> memory;
    memory.fill({});
    auto table = std::make_unique<EndpointTable>();
    table->queue_bound.store(kEntries / 2);
    const auto queue = queue_at(memory.data(), kEntries, *table);
    std::atomic<std::uint32_t> starves{0};
    QueueWriter one(queue, 1, &starves), two(queue, 2, &starves);
    for (auto kind : {Kind::kMessage, Kind::kRelayGet, Kind::kRelayDone}) {
      (void)one.write(kind, Bytes(size));
      (void)two.write(kind, Bytes(size));
    }
    std::uint64_t number = 0;
    if (one.claim(number) == Outcome::kSent) (void)two.write(Kind::kMessage, Bytes(size));
    corpus.emplace_back(memory.begin(), memory.end());
  }
  return corpus;
}

/// One byte of kind, then the message.
std::vector<Bytes> protocol() {
  std::vector<Bytes> corpus;
  for (std::size_t size : {4u, 16u, 24u, 48u, 56u, 64u, 500u})
    for (std::uint8_t kind = 0; kind <= nnti::kMaxMessageKind; ++kind) {
      corpus.emplace_back(size + 1);
      corpus.back()[0] = static_cast<std::byte>(kind);
    }
  return corpus;
}

/// Conversations of channels, as events for drive_channel(); the first byte says which side we are, over what.
std::vector<Bytes> sessions() {
  using namespace nnti::channel;
  std::vector<Bytes> corpus;
  const auto event = [](Bytes &to, int what, std::uint8_t type, std::uint64_t number, std::uint64_t acknowledged,
                        const Bytes &body) {
    HeaderBytes header;
    encode_header({type, number, acknowledged}, header);
    to.push_back(static_cast<std::byte>(what));
    to.push_back(static_cast<std::byte>(header.size() + body.size()));
    to.insert(to.end(), header.begin(), header.end());
    to.insert(to.end(), body.begin(), body.end());
  };
  const auto happens = [](Bytes &to, int what) { to.insert(to.end(), {static_cast<std::byte>(what), std::byte{0}}); };
  for (int side = 0; side < 4; ++side) {
    Bytes talk{static_cast<std::byte>(side)};
    for (std::uint32_t link = 0, number = 0; link < 3; ++link) {
      const int here = static_cast<int>(16 * link);
      if (side < 2) {
        happens(talk, 15);
        event(talk, here, 40, number, number, encode_opening({link > 0, link + 1, {}, {64, 65536}}));
      } else {
        event(talk, here, 41, number, 0, encode_opened({link + 1, {64, 65536}}));
      }
      for (int i = 0; i < 4; ++i, ++number) event(talk, here, 0, number, number / 2, Bytes(20, std::byte{7}));
      event(talk, here, 33, number, number / 2, Bytes(2, std::byte{5}));
      event(talk, here, 34, number, number / 2, {});
      happens(talk, here + 11);
      happens(talk, here + (link == 2 ? 13 : 12));
      happens(talk, 14 + 16 * 5);
    }
    event(talk, 32, 32, 12, 6, {});
    corpus.push_back(std::move(talk));
  }
  return corpus;
}

/// Changes, removes or repeats a few bytes.
void mutate(Bytes &bytes, std::mt19937 &random) {
  for (auto changes = 1 + random() % 4; changes != 0 && !bytes.empty(); --changes) {
    auto at = random() % bytes.size();
    if (random() % 4 == 0) at = at / 64 * 64 + random() % 8;  // where headers are
    at = std::min<std::size_t>(at, bytes.size() - 1);
    switch (random() % 5) {
      case 0: bytes[at] = static_cast<std::byte>(random()); break;
      case 1: bytes[at] ^= static_cast<std::byte>(1u << random() % 8); break;
      case 2: bytes.resize(at); break;
      case 3: bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), 1 + random() % 16, std::byte{0xff}); break;
      default: bytes.insert(bytes.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at), bytes.end()); break;
    }
    if (bytes.size() > 16384) bytes.resize(16384);
  }
}

void feed(Target target, const std::vector<Bytes> &corpus, int mutations) {
  for (const auto &input : corpus) target(input);
  std::mt19937 random(1);
  for (int i = 0; i < mutations; ++i) {
    auto input = corpus[random() % corpus.size()];
    mutate(input, random);
    target(input);
  }
}

TEST(Fuzz, PageDecoderTakesAnyBytes) { feed(nnti::fuzz::decode_pages, conversations(), kMutations); }
TEST(Fuzz, HandshakeTakesAnyBytes) { feed(nnti::fuzz::shake_hands, conversations(), kMutations / 5); }
TEST(Fuzz, EndpointTakesAnyProtocolMessage) { feed(nnti::fuzz::protocol_messages, protocol(), kMutations); }
TEST(Fuzz, ChannelTakesAnyBytes) { feed(nnti::fuzz::drive_channel, sessions(), kMutations); }
TEST(Fuzz, QueueTakesAnyBytes) { feed(nnti::fuzz::read_queue, queues(), kMutations); }
TEST(Fuzz, RingTakesAnyBytes) { feed(nnti::fuzz::read_ring, rings(), kMutations); }

}  // namespace

// SPDX-License-Identifier: BSD-3-Clause
// A shared queue's contents, which its reader reads, and another writer writes into.
#include "nnti/transports/shm/shared_queue.hpp"
#include "nnti/transports/shm/table.hpp"

#include <base/testing/fuzz.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

namespace {

using namespace nnti;
using namespace nnti::shm;
using nessie::fuzz::Bytes;

constexpr std::uint64_t kEntries = 16;

/// The bytes are a queue that others write; in between we write into it ourselves.
void read_queue(std::span<const std::byte> bytes) {
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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  read_queue(std::as_bytes(std::span(data, size)));
  return 0;
}

std::vector<nessie::fuzz::Bytes> nessie::fuzz::seeds() {
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

// SPDX-License-Identifier: BSD-3-Clause
// What operations move, on every transport: messages, put, get, scatter, gather, atomics, segments.
#include "nnti/work/pair.hpp"

#include <algorithm>
#include <cstring>

namespace nnti::engine_test {
namespace {

/// Where a context's variable lies.
constexpr std::uint64_t at(std::uint64_t variable) { return variable * sizeof(std::uint64_t); }

class Operations : public Engine {};

/// A buffer of pieces of different sizes with gaps between them.
struct Pieces {
  Pieces(const Node &node, std::size_t pieces, std::size_t size, Purpose purposes)
      : node_(node), memory(pieces * (size + 40)) {
    std::size_t at = 0;
    for (std::size_t i = 0; i < pieces; ++i) {
      segments.emplace_back(memory.data() + at, size + i % 3 * 8);
      at += size + 40;
    }
    auto made = node->register_segments(segments, purposes);
    EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().to_string());
    if (made.ok()) handle = *made;
  }
  ~Pieces() { (void)node_->unregister(handle.local()).ok(); }
  std::vector<std::byte> together() const {
    std::vector<std::byte> bytes;
    for (const auto &segment : segments) bytes.insert(bytes.end(), segment.begin(), segment.end());
    return bytes;
  }
  void fill(unsigned seed) {
    for (auto &segment : segments)
      for (auto &byte : segment) byte = static_cast<std::byte>(seed += 13);
  }

 private:
  const Node &node_;

 public:
  std::vector<std::byte> memory;
  std::vector<std::span<std::byte>> segments;
  BufferHandle handle;
};

TEST_P(Operations, MessagesFillElementsInTurn) {
  Buffer queue(*server, 64, 3, Purpose::kReceiveQueue), message(*client, 64, 1, Purpose::kSendSource);
  for (unsigned i = 0; i < 7; ++i) {
    message.fill(i);
    const auto sent = finish(send(message));
    EXPECT_EQ(sent.code, Code::kOk);
    EXPECT_EQ(sent.length, 64u);
    EXPECT_TRUE(sent.outward);
    EXPECT_EQ(sent.peer->process, peer);
    const auto got = receive(queue.id());
    EXPECT_EQ(got.offset, i % 3 * 64u);
    EXPECT_EQ(got.peer->process, (*client)->id());
    EXPECT_EQ(std::memcmp(queue.memory.data() + got.offset, message.memory.data(), 64), 0);
    EXPECT_TRUE((*server)->release(queue.id(), got.element).ok());
  }
}

TEST_P(Operations, LargeAndSmallMessagesArriveInOrder) {
  constexpr std::size_t kLarge = 1 << 20;
  Buffer queue(*server, kLarge, 4, Purpose::kReceiveQueue), large(*client, kLarge, 1, Purpose::kSendSource),
      small(*client, 8, 1, Purpose::kSendSource);
  large.fill(3);
  const RequestId requests[] = {send(large), send(small), send(large)};
  std::vector<Event> events(3);
  ASSERT_TRUE((*client)->wait_all(requests, watchdog(), events).ok());
  for (const std::uint64_t length : {kLarge, std::size_t{8}, kLarge}) {
    const auto got = receive(queue.id());
    EXPECT_EQ(got.length, length);
    const auto &sent = length == 8 ? small : large;
    EXPECT_EQ(std::memcmp(queue.memory.data() + got.offset, sent.memory.data(), length), 0);
  }
}

TEST_P(Operations, PutAndGetMoveTheRangeAndNothingElse) {
  Buffer target(*server, 100'000, 1, kTarget), source(*client, 50'000, 1, kLocal);
  source.fill(1);
  const auto before = target.memory;
  ASSERT_EQ(put(source, target.handle, 10'000, 40'000, 60'000), Code::kOk);
  EXPECT_EQ(std::memcmp(target.memory.data(), before.data(), 60'000), 0);
  EXPECT_EQ(std::memcmp(target.memory.data() + 60'000, source.memory.data() + 10'000, 40'000), 0);
  Buffer copy(*client, 50'000, 1, kLocal);
  ASSERT_EQ(get(target.handle, 60'001, 39'999, copy, 7), Code::kOk);
  EXPECT_EQ(std::memcmp(copy.memory.data() + 7, source.memory.data() + 10'001, 39'999), 0);
  EXPECT_EQ(copy.memory[6], std::byte{0});
}

TEST_P(Operations, WhatWasLookedUpIsReachedWhileItsOwnerIsInNoCall_WhereTheTransportCan) {
  Buffer queue(*server, 100'000, 1, Purpose::kReceiveQueue), source(*server, 5000, 1, kTarget);
  Buffer message(*client, 100'000, 1, Purpose::kSendSource), copy(*client, 5000, 1, kLocal);
  source.fill(8);
  (*client)->look_up(source.handle);
  (*client)->look_up(source.handle);
  ASSERT_EQ(finish(send(message)).code, Code::kOk);  // the server answers in order
  if (subject().transport == "shm") progress.reset();
  ASSERT_EQ(get(source.handle, 0, 5000, copy, 0), Code::kOk);
  EXPECT_EQ(copy.memory, source.memory);
}

TEST_P(Operations, AllocatedMemoryIsReachedLikeAnyOther) {
  auto target = (*server)->allocate(4096, 2, kTarget);
  ASSERT_TRUE(target.ok()) << target.error().to_string();
  Buffer source(*client, 4096, 1, kLocal);
  source.fill(9);
  ASSERT_EQ(put(source, *target, 0, 4096, 4096), Code::kOk);
  auto memory = (*server)->memory_of(target->local());
  ASSERT_TRUE(memory.ok());
  EXPECT_EQ(std::memcmp((*memory)[0].data() + 4096, source.memory.data(), 4096), 0);
  EXPECT_TRUE((*server)->unregister(target->local()).ok());
}

TEST_P(Operations, SegmentsOnBothSidesAreCrossedWhereverTheyEnd) {
  Pieces target(*server, 11, 1000, kTarget), source(*client, 7, 1700, kLocal);
  source.fill(5);
  RequestId request;
  ASSERT_TRUE((*client)->put(source.handle.local(), 333, 9000, target.handle, 555, &request).ok());
  ASSERT_EQ(finish(request).code, Code::kOk);
  const auto sent = source.together(), got = target.together();
  EXPECT_EQ(std::memcmp(got.data() + 555, sent.data() + 333, 9000), 0);
  EXPECT_EQ(got[554], std::byte{0});
  EXPECT_EQ(got[9555], std::byte{0});
  Pieces copy(*client, 20, 600, kLocal);
  ASSERT_TRUE((*client)->get(target.handle, 555, 9000, copy.handle.local(), 1, &request).ok());
  ASSERT_EQ(finish(request).code, Code::kOk);
  EXPECT_EQ(std::memcmp(copy.together().data() + 1, sent.data() + 333, 9000), 0);
}

TEST_P(Operations, ABufferOfManySegmentsIsDescribedPieceByPiece) {
  constexpr std::size_t kPieces = 700, kEach = 16, kBytes = kPieces * kEach;
  Pieces target(*server, kPieces, kEach, kTarget);
  Buffer source(*client, kBytes, 1, kLocal);
  source.fill(2);
  ASSERT_EQ(put(source, target.handle, 0, kBytes, 0), Code::kOk);
  EXPECT_EQ(std::memcmp(target.together().data(), source.memory.data(), kBytes), 0);
}

TEST_P(Operations, MessagesGoFromAndToSegments) {
  for (const std::size_t size : {40u, 30'000u}) {  // in one message of the transport, and fetched
    Pieces message(*client, 5, size, Purpose::kSendSource), inbox(*server, 9, size, Purpose::kReceiveDestination);
    message.fill(static_cast<unsigned>(size));
    RequestId request;
    ASSERT_TRUE((*client)->send(peer, message.handle.local(), &inbox.handle, &request).ok());
    ASSERT_EQ(finish(request).code, Code::kOk);
    const auto got = receive(inbox.handle.local());
    EXPECT_EQ(got.length, message.together().size());
    EXPECT_EQ(std::memcmp(inbox.together().data(), message.together().data(), got.length), 0);
  }
}

TEST_P(Operations, ScatterAndGatherReachEveryPeersBuffer) {
  Buffer one(*server, 100, 1, kTarget), two(*server, 200, 1, kTarget), three(*server, 100, 1, kTarget);
  Buffer local(*client, 300, 1, kLocal), copy(*client, 300, 1, kLocal);
  local.fill(4);
  const BufferHandle targets[] = {one.handle, two.handle, three.handle};
  RequestId request;
  ASSERT_TRUE((*client)->scatter(local.id(), 100, targets, &request).ok());
  const auto scattered = finish(request);
  EXPECT_EQ(scattered.code, Code::kOk);
  EXPECT_EQ(scattered.length, 300u);
  for (int i = 0; i < 3; ++i) {
    const auto &target = i == 0 ? one : i == 1 ? two : three;
    EXPECT_EQ(std::memcmp(target.memory.data(), local.memory.data() + std::ptrdiff_t{100} * i, 100), 0);
  }
  ASSERT_TRUE((*client)->gather(targets, 100, copy.id(), &request).ok());
  EXPECT_EQ(finish(request).code, Code::kOk);
  EXPECT_EQ(std::memcmp(copy.memory.data(), local.memory.data(), 300), 0);
}

TEST_P(Operations, ScatterTellsTheFirstFailure_AndMovesNothingIfTheCallFails) {
  auto gone = std::make_unique<Buffer>(*server, 100, 1, kTarget);
  Buffer one(*server, 100, 1, kTarget), local(*client, 200, 1, kLocal);
  local.fill(4);
  const BufferHandle targets[] = {one.handle, gone->handle};
  RequestId request;
  EXPECT_EQ((*client)->scatter(local.id(), 101, targets, &request).code(), Code::kOutOfRange);
  EXPECT_EQ(one.memory[0], std::byte{0});
  gone.reset();
  ASSERT_TRUE((*client)->scatter(local.id(), 100, targets, &request).ok());
  EXPECT_EQ(finish(request).code, Code::kNotFound);
  EXPECT_TRUE((*client)->unregister(local.id()).ok());
}

TEST_P(Operations, AtomicsReturnTheFormerValue) {
  Buffer target(*server, 64, 1, Purpose::kAtomics), result(*client, 64, 1, Purpose::kLocalWrite);
  std::atomic_ref(target.word(2)).store(40);
  RequestId request;
  ASSERT_TRUE((*client)->fetch_add(target.handle, 16, 2, result.id(), 8, &request).ok());
  EXPECT_EQ(finish(request).code, Code::kOk);
  EXPECT_EQ(result.word(1), 40u);
  EXPECT_EQ(std::atomic_ref(target.word(2)).load(), 42u);
  ASSERT_TRUE((*client)->compare_swap(target.handle, 16, 41, 1, result.id(), 0, &request).ok());
  EXPECT_EQ(finish(request).code, Code::kOk);
  EXPECT_EQ(result.word(0), 42u);
  ASSERT_TRUE((*client)->compare_swap(target.handle, 16, 42, 1, result.id(), 0, &request).ok());
  EXPECT_EQ(finish(request).code, Code::kOk);
  EXPECT_EQ(std::atomic_ref(target.word(2)).load(), 1u);
}

TEST_P(Operations, VariablesAreReachedWithoutAHandle_AndTheirOwnerIsTold) {
  std::atomic<int> changes{0};
  ASSERT_TRUE((*server)->on_variable_changed(5, [&] { ++changes; }).ok());
  const auto theirs = (*client)->variables_of(peer), mine = (*client)->variables_of((*client)->id());
  for (int i = 0; i < 10; ++i) {
    RequestId request;
    ASSERT_TRUE((*client)->fetch_add(theirs, at(5), 3, mine.local(), at(7), &request).ok());
    ASSERT_EQ(finish(request).code, Code::kOk);
    EXPECT_EQ(*(*client)->read_variable(7), 3 * i);
  }
  EXPECT_EQ(*(*server)->read_variable(5), 30);
  const auto end = watchdog();
  while (changes < 10 && !end.passed()) std::this_thread::yield();
  EXPECT_EQ(changes, 10);
  RequestId request;
  ASSERT_TRUE((*client)->fetch_add(theirs, at(512), 1, mine.local(), 0, &request).ok());
  EXPECT_EQ(finish(request).code, Code::kOutOfRange);
  EXPECT_EQ((*client)->fetch_add(theirs, 0, 1, mine.local(), at(512), &request).code(), Code::kOutOfRange);
}

TEST_P(Operations, TargetsWithEventsSeeWhatIsDoneToThem_OthersDoNot) {
  Buffer loud(*server, 256, 1, kTarget | Purpose::kAtomics | Purpose::kWithEvents), quiet(*server, 256, 1, kTarget);
  Buffer local(*client, 256, 1, kLocal);
  ASSERT_EQ(put(local, quiet.handle, 0, 10, 0), Code::kOk);
  ASSERT_EQ(put(local, loud.handle, 0, 100, 7), Code::kOk);
  ASSERT_EQ(get(loud.handle, 20, 30, local, 0), Code::kOk);
  RequestId request;
  ASSERT_TRUE((*client)->fetch_add(loud.handle, 8, 1, local.id(), 0, &request).ok());
  ASSERT_EQ(finish(request).code, Code::kOk);
  const auto written = receive(loud.id()), read = receive(loud.id()), added = receive(loud.id());
  EXPECT_EQ(written.purpose, Purpose::kRemoteWrite);
  EXPECT_EQ(written.offset, 7u);
  EXPECT_EQ(written.length, 100u);
  EXPECT_EQ(read.purpose, Purpose::kRemoteRead);
  EXPECT_TRUE(read.outward);
  EXPECT_EQ(added.purpose, Purpose::kAtomics);
  EXPECT_EQ(added.offset, 8u);
  EXPECT_EQ((*server)->wait(quiet.id(), Purpose::kNone, Deadline::now()).code(), Code::kTimedOut);
}

TEST_P(Operations, AContextIsItsOwnPeer_OrIsToldThatItsTransportCannotDoThat) {
  const Node &self = *client;
  const auto connected = self->connect(self->url(), watchdog());
  if (!connected.ok()) {
    EXPECT_EQ(connected.code(), Code::kUnsupported) << connected.error().to_string();
    return;
  }
  peer = self->id();
  EXPECT_EQ((*connected)->process, peer);
  Buffer queue(self, 1 << 20, 2, Purpose::kReceiveQueue), small(self, 64, 1, Purpose::kSendSource),
      large(self, 1 << 20, 1, Purpose::kSendSource), local(self, 4096, 1, kLocal),
      target(self, 4096, 1, kTarget | Purpose::kAtomics);
  for (auto *message : {&small, &large}) {
    message->fill(5);
    EXPECT_EQ(finish(send(*message)).code, Code::kOk);
    const auto got = self->wait(queue.id(), Purpose::kNone, watchdog());
    ASSERT_TRUE(got.ok()) << got.error().to_string();
    EXPECT_EQ(got->peer->process, peer);
    EXPECT_EQ(std::memcmp(queue.memory.data() + got->offset, message->memory.data(), got->length), 0);
  }
  local.fill(7);
  const auto sent = local.memory;
  EXPECT_EQ(put(local, target.handle, 0, 4096, 0), Code::kOk);
  EXPECT_EQ(target.memory, sent);
  std::ranges::fill(local.memory, std::byte{0});
  EXPECT_EQ(get(target.handle, 0, 4096, local, 0), Code::kOk);
  EXPECT_EQ(local.memory, sent);
  const auto before = target.word(3);
  RequestId request;
  ASSERT_TRUE(self->fetch_add(target.handle, at(3), 2, local.id(), 0, &request).ok());
  EXPECT_EQ(finish(request).code, Code::kOk);
  EXPECT_EQ(target.word(3), before + 2);
  EXPECT_TRUE(self->disconnect(peer).ok());
  EXPECT_EQ(self->find_peer(peer), nullptr);
}

INSTANTIATE_TEST_SUITE_P(Transports, Operations, testing::ValuesIn(conformance::subjects_for_upper_floors()),
                         [](const auto &info) { return info.param.name; });

}  // namespace
}  // namespace nnti::engine_test

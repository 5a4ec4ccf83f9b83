// SPDX-License-Identifier: BSD-3-Clause
// Streams, and transfers over them, between a pair of sockets, one side of which may be anything.
#include "nnti/conformance/tools_testing.hpp"
#include "nnti/framed/transfers.hpp"
#include "nnti/transports/tcp/coalescing.hpp"
#include "nnti/transports/tcp/streams.hpp"
#include "nnti/transports/tcp/wire.hpp"

#include <gtest/gtest.h>
#include <malloc.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>

namespace {

using namespace nnti;
using namespace nnti::tcp;
using framed::ChunkHeader;
using framed::Transfers;
using framed::TransfersHost;
using namespace std::chrono_literals;
using test::Bytes;
using test::Outcome;
using test::pattern;

constexpr std::uint64_t kKey = 42;

/// A connection with a stream: remembers what comes, lends one buffer.
struct Side final : LinkHost, TransfersHost {
  Side(Poller &poller, nessie::Fd socket)
      : streams(poller), link(std::move(socket), streams, static_cast<LinkHost &>(*this)) {}

  // LinkHost
  void on_frame(std::span<const std::byte> frame) override { frames.emplace_back(frame.begin(), frame.end()); }
  std::span<std::byte> on_chunk(std::span<const std::byte> header, std::size_t size_bytes) override {
    const auto chunk = framed::decode_chunk(header, size_bytes);
    if (!chunk) on_breach("");
    if (!chunk) return {};
    arriving = *chunk;
    return transfers.on_chunk(arriving, size_bytes);
  }
  void on_chunk_end() override { transfers.on_chunk_received(arriving); }
  void on_chunk_sent(std::uint64_t id) override { transfers.on_chunk_sent(sent.at(id)); }
  void on_end(const Error &error) override {
    if (end == Code::kOk) end = error.code;
  }
  bool pump_chunks() override { return transfers.pump(); }

  // TransfersHost
  Target target_of_put(std::uint64_t key, std::uint64_t offset, std::uint64_t length) override {
    if (key != kKey) return {Code::kRefused, {}, nullptr};
    if (offset > memory.size() || length > memory.size() - offset) return {Code::kOutOfRange, {}, nullptr};
    return {Code::kOk, std::span(memory).subspan(offset, length), &memory};
  }
  void on_breach(const char *) override { end = Code::kBadMessage; }
  void finish_later() override {}
  void pump_transfers_later() override { link.flush_later(); }
  void answer(std::uint64_t operation, Code result) override { answers.emplace_back(operation, result); }
  bool takes_chunk() const override { return link.stream().unsent_chunks() < 2; }
  Sent send_chunk(const ChunkHeader &header, std::span<const std::byte> bytes) override {
    sent.push_back(header);
    const auto whole = link.send_chunk(std::as_bytes(std::span(&header, 1)), bytes, sent.size() - 1);
    return whole ? Sent::kDone : Sent::kInFlight;
  }
  bool recall(std::span<std::byte> bytes, bool outgoing) override {
    outgoing ? link.stream().copy_unsent(bytes) : link.stream().discard_arriving();
    return true;
  }

  void progress() {
    streams.poll();
    transfers.finish();
  }

  Bytes memory;
  std::vector<Bytes> frames;
  std::vector<std::pair<std::uint64_t, Code>> answers;
  Code end = Code::kOk;
  ChunkHeader arriving;
  std::vector<ChunkHeader> sent;  ///< by id
  Streams streams;
  Transfers transfers{static_cast<TransfersHost &>(*this)};
  Link link;
};

/// What many streams without transfers are for.
struct Keeping final : LinkHost {
  void on_frame(std::span<const std::byte> frame) override { frames.emplace_back(frame.begin(), frame.end()); }
  std::span<std::byte> on_chunk(std::span<const std::byte>, std::size_t) override { return {}; }
  void on_chunk_end() override {}
  void on_chunk_sent(std::uint64_t) override {}
  void on_end(const Error &) override {}
  bool pump_chunks() override { return false; }
  std::vector<Bytes> frames;
};

std::pair<nessie::Fd, nessie::Fd> sockets() {
  std::array<int, 2> pair{-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair.data()), 0);
  return {nessie::Fd(pair[0]), nessie::Fd(pair[1])};
}

class StreamPair : public testing::Test {
 protected:
  StreamPair() {
    auto [a, b] = sockets();
    ours = std::make_unique<Side>(poller, std::move(a));
    theirs = std::make_unique<Side>(poller, std::move(b));
  }
  template <class State> [[nodiscard]] bool drive_until(State reached) {
    return test::until(reached, [this] { ours->progress(), theirs->progress(); });
  }
  /// What the transport does with a get's frame, and with answers.
  void ask_theirs_for(std::uint64_t operation, std::uint64_t length) {
    EXPECT_TRUE(
        theirs->transfers.serve_get(operation, {Code::kOk, std::span(theirs->memory).first(length), &theirs->memory}));
  }
  void hand_over_answer() {
    ASSERT_EQ(theirs->answers.size(), 1u);
    const auto [operation, code] = theirs->answers.front();
    EXPECT_TRUE(ours->transfers.answered(operation, code, {}));
    ours->transfers.finish();
  }
  static RemoteBuffer remote(std::uint64_t key = kKey) { return {.key = key}; }
  /// Puts, until theirs has answered; how, and what it answered.
  Code put(std::uint64_t key, std::uint64_t offset, std::span<const std::byte> local, Outcome &outcome) {
    ours->transfers.begin_put(remote(key), offset, local, outcome);
    EXPECT_TRUE(drive_until([&] { return !theirs->answers.empty(); }));
    return theirs->answers.empty() ? Code::kTimedOut : theirs->answers.front().second;
  }
  void expect_a_frame_passes(Side &from, Side &to) {
    const Bytes frame = pattern(10);
    from.link.send_frame(frame, {});
    ASSERT_TRUE(drive_until([&] { return !to.frames.empty(); }));
    EXPECT_EQ(to.frames, std::vector<Bytes>{frame});
  }

  Poller poller;
  std::unique_ptr<Side> ours, theirs;
};

TEST_F(StreamPair, Frames_ArriveInOrderAndWhole) {
  std::vector<Bytes> sent;
  for (std::size_t i = 0; i < 500; ++i) sent.push_back(pattern(1 + i * 37 % kMaxFrameBytes, static_cast<unsigned>(i)));
  for (const auto &frame : sent) {
    const auto cut = frame.size() / 3;
    ours->link.send_frame(std::span(frame).first(std::min<std::size_t>(cut, 100)),
                          std::span(frame).subspan(std::min<std::size_t>(cut, 100)));
  }
  ASSERT_TRUE(drive_until([&] { return theirs->frames.size() == sent.size(); }));
  EXPECT_EQ(theirs->frames, sent);
  EXPECT_FALSE(ours->link.stream().has_unsent());
}

TEST_F(StreamPair, Get_ArrivesInPlace) {
  theirs->memory = pattern(5'000'001);
  Bytes local(theirs->memory.size());
  Outcome outcome;
  ours->transfers.begin_get(local, outcome);
  ask_theirs_for(1, local.size());
  ASSERT_TRUE(drive_until([&] { return outcome.times == 1; }));
  EXPECT_EQ(outcome.status.code(), Code::kOk);
  EXPECT_EQ(local, theirs->memory);
  EXPECT_TRUE(theirs->answers.empty());
}

TEST_F(StreamPair, Get_OfAnySize) {
  constexpr std::size_t kSegment = 64 << 10;
  for (const std::size_t size : {framed::kMaxInlineBytes + 1, kSegment - 1025, kSegment - 1024, kSegment + 1,
                                 kSegment + 4096, kSegment + 4097, std::size_t{1} << 20, (std::size_t{1} << 20) + 1}) {
    theirs->memory = pattern(size);
    Bytes local(size);
    Outcome outcome;
    ask_theirs_for(ours->transfers.begin_get(local, outcome), size);
    ASSERT_TRUE(drive_until([&] { return outcome.times == 1; })) << size;
    EXPECT_EQ(local, theirs->memory) << size;
  }
}

TEST_F(StreamPair, Sleeper_IsWokenHoweverLongItPolled) {
  for (const int polls : {1, 100'000, 1}) {
    for (int i = 0; i < polls; ++i) ours->progress();
    ours->streams.arm();
    EXPECT_EQ(poller.dispatch(Deadline::in(0ms)), 0);
    theirs->link.send_frame(pattern(8), {});
    EXPECT_EQ(poller.dispatch(Deadline::in(kWatchdog)), 1);
    ours->progress();
    EXPECT_EQ(ours->frames.size(), 1u);
    ours->frames.clear();
  }
}

TEST_F(StreamPair, Put_IsAnsweredWhenAllIsInPlace) {
  theirs->memory.resize(3'000'000);
  const Bytes local = pattern(2'500'000);
  Outcome outcome;
  EXPECT_EQ(put(kKey, 100, local, outcome), Code::kOk);
  EXPECT_TRUE(std::ranges::equal(std::span(theirs->memory).subspan(100, local.size()), local));
  EXPECT_EQ(outcome.times, 0);
  hand_over_answer();
  EXPECT_EQ(outcome.times, 1);
  EXPECT_EQ(outcome.status.code(), Code::kOk);
}

TEST_F(StreamPair, RefusedPut_MovesNothing_AndWhatFollowsArrives) {
  theirs->memory.resize(1000);
  const Bytes local = pattern(4'000'000);
  Outcome outcome;
  EXPECT_EQ(put(kKey + 1, 0, local, outcome), Code::kRefused);
  hand_over_answer();
  EXPECT_EQ(outcome.status.code(), Code::kRefused);
  expect_a_frame_passes(*ours, *theirs);
  EXPECT_EQ(theirs->memory, Bytes(1000));
  EXPECT_EQ(theirs->end, Code::kOk);
}

TEST_F(StreamPair, PutOutOfRange_IsRefused) {
  theirs->memory.resize(5000);
  const Bytes local = pattern(5001);
  Outcome outcome;
  EXPECT_EQ(put(kKey, 0, local, outcome), Code::kOutOfRange);
}

TEST_F(StreamPair, BufferThatGoesWhileItIsRead_IsTouchedNoMore) {
  theirs->memory = pattern(8'000'000);
  Bytes local(theirs->memory.size());
  Outcome outcome;
  ours->transfers.begin_get(local, outcome);
  ask_theirs_for(1, local.size());
  theirs->transfers.leave(&theirs->memory);
  Bytes().swap(theirs->memory);
  ASSERT_TRUE(drive_until([&] { return !theirs->answers.empty(); }));
  EXPECT_EQ(theirs->answers.front().second, Code::kRefused);
  hand_over_answer();
  EXPECT_EQ(outcome.status.code(), Code::kRefused);
  expect_a_frame_passes(*theirs, *ours);
}

TEST_F(StreamPair, BufferThatGoesWhileItIsWritten_IsTouchedNoMore) {
  theirs->memory.resize(8'000'000);
  const Bytes local = pattern(8'000'000);
  Outcome outcome;
  ours->transfers.begin_put(remote(), 0, local, outcome);
  ASSERT_TRUE(drive_until([&] { return theirs->memory[0] == local[0]; }));
  theirs->transfers.leave(&theirs->memory);
  Bytes().swap(theirs->memory);
  ASSERT_TRUE(drive_until([&] { return !theirs->answers.empty(); }));
  hand_over_answer();
  EXPECT_EQ(outcome.status.code(), Code::kRefused);
  expect_a_frame_passes(*ours, *theirs);
}

TEST_F(StreamPair, WhoeverTakesItsOperationsBack_HasItsMemoryForItself) {
  theirs->memory = pattern(8'000'000);
  auto local = std::make_unique<Bytes>(4'000'000);
  Outcome get, put;
  ours->transfers.begin_get(*local, get);
  ask_theirs_for(1, local->size());
  const auto source = std::make_unique<Bytes>(pattern(4'000'000));
  ours->transfers.begin_put(remote(), 0, *source, put);
  for (int i = 0; i < 3; ++i) theirs->progress();
  ours->progress();
  ours->transfers.stop_all();
  EXPECT_EQ(ours->transfers.take_ours().size(), 2u);
  local.reset();
  for (int i = 0; i < 100; ++i) {
    ours->progress();
    theirs->progress();
  }
  EXPECT_EQ(get.times + put.times, 0);
  EXPECT_EQ(ours->end, Code::kOk);
}

TEST_F(StreamPair, EndOfThePeer_IsToldAfterItsLastFrame) {
  const Bytes frame = pattern(3000);
  theirs->link.send_frame({}, frame);
  theirs->link.close();
  ASSERT_TRUE(drive_until([&] { return ours->end != Code::kOk; }));
  EXPECT_EQ(ours->end, Code::kIo);
  EXPECT_EQ(ours->frames, std::vector<Bytes>{frame});
}

TEST_F(StreamPair, TransfersThatWereNeverAskedFor_AreABreach) {
  theirs->memory = pattern(10'000);
  ask_theirs_for(1, 10'000);
  ASSERT_TRUE(drive_until([&] { return ours->end != Code::kOk; }));
  EXPECT_EQ(ours->end, Code::kBadMessage);
}

TEST_F(StreamPair, TransfersThatWereNotAskedFor_AreABreach) {
  theirs->memory = pattern(10'000);
  Bytes local(5000);
  Outcome outcome;
  ask_theirs_for(ours->transfers.begin_get(local, outcome), 10'000);
  ASSERT_TRUE(drive_until([&] { return ours->end != Code::kOk; }));
  EXPECT_EQ(ours->end, Code::kBadMessage);
  EXPECT_EQ(local, Bytes(5000));
  EXPECT_EQ(outcome.times, 0);
}

TEST(ManyStreams, Many_AreAllRead) {
  Poller poller;
  Streams streams(poller);
  Keeping host;
  std::vector<std::unique_ptr<Link>> links;
  std::vector<std::unique_ptr<Side>> peers;
  for (int i = 0; i < 20; ++i) {
    auto [a, b] = sockets();
    links.push_back(std::make_unique<Link>(std::move(a), streams, host));
    peers.push_back(std::make_unique<Side>(poller, std::move(b)));
  }
  for (auto &peer : peers) peer->link.send_frame(pattern(10), {});
  for (const auto deadline = Deadline::in(kWatchdog); host.frames.size() < 20 && !deadline.passed();) streams.poll();
  EXPECT_EQ(host.frames.size(), 20u);
}

/// What the peers of many streams write, piece by piece.
class StreamPieces : public testing::Test {
 protected:
  static constexpr std::size_t kStreams = 64;
  StreamPieces() {
    for (std::size_t i = 0; i < kStreams; ++i) {
      auto [a, b] = sockets();
      links.push_back(std::make_unique<Link>(std::move(a), streams, hosts[i]));
      peers.push_back(std::move(b));
    }
  }
  static Bytes frame_of(std::size_t stream) { return pattern(1000 + stream, static_cast<unsigned>(stream)); }
  /// Of its frame, with what precedes it.
  void write(std::size_t stream, std::size_t from, std::size_t to) {
    const auto frame = frame_of(stream);
    const Prefix prefix{static_cast<std::uint32_t>(frame.size()), 0};
    Bytes bytes(sizeof prefix);
    std::memcpy(bytes.data(), &prefix, sizeof prefix);
    bytes.insert(bytes.end(), frame.begin(), frame.end());
    to = std::min(to, bytes.size());
    ASSERT_EQ(::send(peers[stream].get(), bytes.data() + from, to - from, 0), static_cast<ssize_t>(to - from));
  }
  void poll() {
    for (int i = 0; i < 4; ++i) streams.poll();
  }
  static std::size_t heap_bytes() {
    const auto heap = ::mallinfo2();
    return heap.uordblks + heap.hblkhd;
  }

  const std::size_t heap_before = heap_bytes();
  Poller poller;
  Streams streams{poller};
  std::array<Keeping, kStreams> hosts;
  std::vector<std::unique_ptr<Link>> links;
  std::vector<nessie::Fd> peers;
};

TEST_F(StreamPieces, HalfAFrameOfEachOfMany_IsKeptApart) {
  for (const auto &[from, to] : {std::pair{0, 5}, {5, 300}, {300, 301}, {301, 10'000}}) {
    for (std::size_t i = 0; i < kStreams; ++i) {
      EXPECT_TRUE(hosts[i].frames.empty());
      write(i, static_cast<std::size_t>(from), static_cast<std::size_t>(to));
    }
    poll();
  }
  for (std::size_t i = 0; i < kStreams; ++i) {
    ASSERT_EQ(hosts[i].frames.size(), 1u);
    EXPECT_EQ(hosts[i].frames.front(), frame_of(i));
  }
}

TEST_F(StreamPieces, IdleOnes_KeepNothingToReadInto) {
  for (std::size_t i = 0; i < kStreams; ++i) write(i, 0, 10'000);
  poll();
  for (const auto &host : hosts) EXPECT_EQ(host.frames.size(), 1u);
  EXPECT_LT(heap_bytes() - heap_before, kStreams * 8192);  // the frames are in it
}

/// As a process that was forked, and has not called exec() yet, keeps it open.
TEST(ManyStreams, AStreamWhoseSocketSomebodyElseHasToo_IsNotHeardOfWhenItIsGone) {
  for (const bool is_closed_first : {false, true}) {
    Poller poller;
    auto [a, b] = sockets();
    const nessie::Fd kept(::dup(a.get()));
    auto side = std::make_unique<Side>(poller, std::move(a));
    ASSERT_EQ(::send(b.get(), "x", 1, MSG_NOSIGNAL), 1);
    ASSERT_EQ(poller.dispatch(Deadline::in(kWatchdog)), 1);
    if (is_closed_first) side->link.close();
    side.reset();
    EXPECT_EQ(poller.dispatch(Deadline::now()), 0);
  }
}

// --- frames that wait for others ----------------------------------------------------------------------------------------

struct FakeClock {
  using time_point = nessie::Clock::time_point;
  static time_point now() { return current; }
  static inline time_point current{};
};
/// With a busy_at of its own.
struct FakeCoalescing : Coalescing<FakeClock> {
  FakeCoalescing() : Coalescing(own_busy_at) {}
  explicit FakeCoalescing(FakeClock::time_point &busy_at) : Coalescing(busy_at) {}
  FakeClock::time_point own_busy_at{};
};

/// Of so many frames that are sent now, those that wait: 'w', and those that go: 'g'.
std::string send_frames(FakeCoalescing &coalescing, int count) {
  std::string what;
  for (int i = 0; i < count; ++i) {
    what += coalescing.on_frame(true) ? 'w' : 'g';
    if (what.back() == 'g' && coalescing.any_waits()) coalescing.on_sent(false);
  }
  return what;
}

TEST(StreamCoalescing, NothingWaitsOfThoseWhoBegin_OrGetOneAnswerAtATime) {
  FakeCoalescing coalescing;
  EXPECT_EQ(send_frames(coalescing, 20), "gggggggggggggggggggg");
  FakeCoalescing alone;
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(send_frames(alone, 1), "g");
    alone.on_received(1);
  }
}

TEST(StreamCoalescing, AnswersToWhatCameTogether_GoWithTheLastOfThem) {
  FakeCoalescing coalescing;
  coalescing.on_received(4);
  EXPECT_EQ(send_frames(coalescing, 6), "wwwggg");
}

TEST(StreamCoalescing, AnswersToWhatCameEarlier_GoWithThoseToWhatCameSince) {
  FakeCoalescing coalescing;
  coalescing.on_received(8);
  EXPECT_EQ(send_frames(coalescing, 3), "www");
  coalescing.on_received(2);
  EXPECT_EQ(send_frames(coalescing, 8), "wwwwwwgg");
}

TEST(StreamCoalescing, WhatIsNeverAnswered_DoesNotMakeOthersWait) {
  FakeCoalescing coalescing;
  for (int i = 0; i < 100; ++i) coalescing.on_received(50);
  std::string what;
  for (int i = 0; i < 200; ++i) {
    coalescing.on_received(1);
    what += send_frames(coalescing, 1);
  }
  EXPECT_EQ(what, std::string(200, 'g'));
}

TEST(StreamCoalescing, WhoeverHasManyUnderWay_SendsSomeTogether) {
  FakeCoalescing coalescing;
  send_frames(coalescing, 16);
  std::string what;
  for (int i = 0; i < 24; ++i) {
    coalescing.on_received(1);
    EXPECT_FALSE(coalescing.any_waits() && coalescing.due()) << i;
    what += send_frames(coalescing, 1);
  }
  EXPECT_EQ(what, "wwwwwgwwwwwgwwwwwgwwwwwg");
}

TEST(StreamCoalescing, NothingWaitsForAnswersThatTakeLong) {
  FakeCoalescing coalescing;
  coalescing.on_received(4);
  std::string what;
  for (int i = 0; i < 4; ++i) {
    FakeClock::current += FakeCoalescing::kSoon * 2;
    what += send_frames(coalescing, 1);
  }
  EXPECT_EQ(what, "gggg");
}

TEST(StreamCoalescing, AnswersWaitForTheNextOnes_WhileThoseToOtherStreamsAreSent) {
  FakeClock::time_point busy_at{};
  FakeCoalescing first(busy_at), second(busy_at);
  first.on_received(16);
  second.on_received(4);
  for (int i = 0; i < 16; ++i) {
    FakeClock::current += FakeCoalescing::kSoon / 2;
    send_frames(first, 1);
  }
  EXPECT_EQ(send_frames(second, 4), "wwwg");
}

TEST(StreamCoalescing, AfterADelay_OneFrameGoesAndTheNextOnesWait) {
  FakeCoalescing coalescing;
  coalescing.on_received(6);
  EXPECT_EQ(send_frames(coalescing, 2), "ww");
  FakeClock::current += FakeCoalescing::kSoon * 2;
  EXPECT_EQ(send_frames(coalescing, 4), "gwwg");
}

TEST(StreamCoalescing, NoFrameWaitsForMoreThanItsTime_HoweverManyFollow) {
  FakeCoalescing coalescing;
  coalescing.on_received(1000);
  int in_a_row = 0, most = 0;
  for (int i = 0; i < 999; ++i) {
    FakeClock::current += FakeCoalescing::kSoon / 2;
    in_a_row = send_frames(coalescing, 1) == "w" ? in_a_row + 1 : 0;
    most = std::max(most, in_a_row);
  }
  EXPECT_LE(most * FakeCoalescing::kSoon / 2, FakeCoalescing::kLinger + FakeCoalescing::kSoon);
  EXPECT_GT(most, 10);
}

TEST(StreamCoalescing, NothingWaitsOfAStreamThatWasSilentForLong_WhileOthersAreBusy) {
  FakeClock::time_point busy_at{};
  FakeCoalescing silent(busy_at), busy(busy_at);
  silent.on_received(4);
  FakeClock::current += FakeCoalescing::kLately * 2;
  busy.on_received(4);
  EXPECT_EQ(send_frames(busy, 2), "ww");
  EXPECT_EQ(send_frames(silent, 1), "g");
}

TEST(StreamCoalescing, AnswersThatTookLong_AreOneThatGoesAndOthersThatWait) {
  FakeCoalescing coalescing;
  coalescing.on_received(6);
  FakeClock::current += FakeCoalescing::kLately * 2;
  EXPECT_EQ(send_frames(coalescing, 6), "gwwwwg");
}

TEST(StreamCoalescing, WhatWaits_IsDueWhenThePeerHasNoMoreThanThat_OrDoesNotAnswer) {
  FakeCoalescing server;
  server.on_received(4);
  EXPECT_EQ(send_frames(server, 2), "ww");
  EXPECT_TRUE(server.due());

  FakeCoalescing client;
  send_frames(client, 16);
  client.on_received(1);
  EXPECT_EQ(send_frames(client, 1), "w");
  EXPECT_FALSE(client.due());
  FakeClock::current += FakeCoalescing::kSoon * 2;
  EXPECT_TRUE(client.due());
  client.on_sent(false);
  client.on_received(1);
  EXPECT_EQ(send_frames(client, 1), "g");  // what it was sent is nothing that it answers
}

TEST(StreamCoalescing, WhoeverLetsFramesWaitForLong_LetsNoneWaitForATime) {
  FakeCoalescing coalescing;
  const auto late = [&] {
    coalescing.on_received(4);
    if (send_frames(coalescing, 1) == "g") return false;
    FakeClock::current += Lateness::kLate * 2;
    EXPECT_TRUE(coalescing.due());
    coalescing.on_sent(true);
    return true;
  };
  int waited = 0;
  for (int i = 0; i < 3000; ++i) waited += late() ? 1 : 0;
  EXPECT_GT(waited, 3);
  EXPECT_LT(waited, 12);
}

/// A stream whose every write arrives as one record.
class StreamRecords : public testing::Test {
 protected:
  StreamRecords() {
    std::array<int, 2> pair{-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair.data()), 0);
    peer = nessie::Fd(pair[1]);
    ours = std::make_unique<Side>(poller, nessie::Fd(pair[0]));
  }
  /// The peer sends `count` frames at once, and they are received.
  void receive_together(int count) {
    Bytes bytes;
    for (int i = 0; i < count; ++i) {
      const Prefix prefix{1, 0};
      const auto *begin = reinterpret_cast<const std::byte *>(&prefix);
      bytes.insert(bytes.end(), begin, begin + sizeof prefix);
      bytes.push_back(std::byte{1});
    }
    ASSERT_EQ(::send(peer.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    ours->progress();
  }
  /// The sizes of the records that have come.
  std::vector<ssize_t> records() {
    std::vector<ssize_t> sizes;
    Bytes bytes(64 << 10);
    for (ssize_t size; (size = ::recv(peer.get(), bytes.data(), bytes.size(), MSG_DONTWAIT)) > 0;)
      sizes.push_back(size);
    return sizes;
  }
  bool wait_for_record() {
    pollfd readable{peer.get(), POLLIN, 0};
    return ::poll(&readable, 1, std::chrono::milliseconds(kWatchdog).count()) == 1;
  }
  /// Of what came together one is answered, and the answer waits for the others.
  bool an_answer_waits() {
    receive_together(5);
    ours->link.send_frame(frame, {});
    return ours->link.stream().has_unsent();
  }
  /// Tries until it succeeds: nothing waits if the machine had something else to do meanwhile.
  template <class Try> static bool in_some_try(Try attempt) {
    for (int i = 0; i < 1000; ++i)
      if (attempt()) return true;
    return false;
  }

  const Bytes frame = pattern(40);
  Poller poller;
  nessie::Fd peer;
  std::unique_ptr<Side> ours;
};

TEST_F(StreamRecords, AnswersToWhatCameTogether_AreOneRecord) {
  EXPECT_TRUE(in_some_try([&] {
    receive_together(5);
    for (int i = 0; i < 5; ++i) ours->link.send_frame(frame, {});
    return records() == std::vector<ssize_t>{ssize_t{5} * 48};
  }));
}

TEST_F(StreamRecords, WhoeverPolls_SendsWhatWaits) {
  EXPECT_TRUE(in_some_try([&] {
    if (!an_answer_waits()) return false;
    ours->progress();
    EXPECT_FALSE(ours->link.stream().has_unsent());
    EXPECT_TRUE(wait_for_record());
    return true;
  }));
}

TEST_F(StreamRecords, WhatNobodyPollsFor_IsSentAllTheSame) {
  for (int round = 0; round < 3; ++round) {  // also after the pusher has gone to sleep
    EXPECT_TRUE(in_some_try([&] {
      records();
      receive_together(5);
      ours->link.send_frame(frame, {});
      ours->link.send_frame(frame, {});
      return ours->link.stream().has_unsent();
    }));
    EXPECT_TRUE(wait_for_record());
    std::this_thread::sleep_for(50ms);
  }
}

TEST_F(StreamRecords, WhileSomebodySleeps_NothingWaits) {
  for (int i = 0; i < 100; ++i) {
    receive_together(5);
    ours->streams.arm();
    for (int frames = 0; frames < 5; ++frames) ours->link.send_frame(frame, {});
    EXPECT_EQ(records().size(), 5u);
  }
}

TEST_F(StreamRecords, WhoeverGoesToSleep_SendsWhatWaits) {
  EXPECT_TRUE(in_some_try([&] {
    if (!an_answer_waits()) return false;
    ours->streams.arm();
    return !ours->link.stream().has_unsent();
  }));
}

TEST_F(StreamRecords, WhoeverCloses_SendsWhatWaits) {
  EXPECT_TRUE(in_some_try([&] { return an_answer_waits(); }));
  records();
  receive_together(5);
  ours->link.send_frame(frame, {});
  ours->link.close();
  EXPECT_FALSE(records().empty());
}

TEST_F(StreamPair, FramesOfAnySize_ThatAnswerEachOther_KeepTheirOrder) {
  std::mt19937 random(7);
  theirs->memory = pattern(300'000);
  std::vector<Bytes> from_ours, from_theirs;
  const auto send_some = [&](Side &side, std::vector<Bytes> &sent) {
    for (auto left = random() % 12; left > 0; --left) {
      sent.push_back(pattern(1 + random() % (random() % 4 == 0 ? kMaxFrameBytes : 300), random()));
      side.link.send_frame({}, sent.back());
    }
  };
  for (int round = 0; round < 2000; ++round) {
    send_some(*ours, from_ours);
    send_some(*theirs, from_theirs);
    if (round % 100 == 0) {
      Bytes local(framed::kMaxInlineBytes + 1 + random() % (theirs->memory.size() - framed::kMaxInlineBytes));
      Outcome outcome;
      ask_theirs_for(ours->transfers.begin_get(local, outcome), local.size());
      send_some(*theirs, from_theirs);
      ASSERT_TRUE(drive_until([&] { return outcome.times == 1; }));
      EXPECT_TRUE(std::ranges::equal(local, std::span(theirs->memory).first(local.size())));
    }
    ours->progress();
    theirs->progress();
  }
  ASSERT_TRUE(drive_until(
      [&] { return ours->frames.size() == from_theirs.size() && theirs->frames.size() == from_ours.size(); }));
  EXPECT_EQ(ours->frames, from_theirs);
  EXPECT_EQ(theirs->frames, from_ours);
}

TEST(TcpHello, SurvivesARoundTrip_AndNothingElseIsTaken) {
  for (const auto kind : {Hello::Kind::kConnection, Hello::Kind::kStream}) {
    const auto bytes = encode_hello(kind, 77);
    const auto hello = decode_hello(bytes);
    ASSERT_TRUE(hello.ok());
    EXPECT_EQ(hello->token, 77u);
    EXPECT_EQ(hello->kind, kind);
    for (std::size_t size = 0; size < bytes.size(); ++size)
      EXPECT_FALSE(decode_hello(std::span(bytes).first(size)).ok());
    for (const std::size_t at : {0, 4, 6}) {
      auto other = bytes;
      other[at] ^= std::byte{8};
      EXPECT_FALSE(decode_hello(other).ok()) << at;
    }
  }
  EXPECT_FALSE(decode_hello(encode_hello(Hello::Kind::kConnection, 0)).ok());
}

}  // namespace

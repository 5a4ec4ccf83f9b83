// SPDX-License-Identifier: BSD-3-Clause
// Large messages, written by their sender alone or read and written at once: what arrives, in which order, and what
// becomes of it when somebody changes his mind, dies, or lies; on every transport.
#include "nnti/work/rendezvous.hpp"
#include "nnti/transport/registration_check.hpp"
#include "nnti/work/pair.hpp"
#include "nnti/work/wire.hpp"

#include <cstring>

namespace nnti::engine_test {
namespace {

using wire::Control;
using wire::Kind;

constexpr std::size_t kLarge = 200'000;

/// Every transport, with messages that are written, and with messages that are half read and half written.
std::vector<Subject> written_and_shared() {
  std::vector<Subject> all;
  for (const char *percent : {"0", "50"})
    for (auto subject : conformance::subjects_for_upper_floors()) {
      subject.name += percent[0] == '0' ? "_written" : "_shared";
      subject.settings.emplace_back("nnti.rendezvous.write_from", "0");
      subject.settings.emplace_back("nnti.rendezvous.read_percent", percent);
      all.push_back(std::move(subject));
    }
  return all;
}

class LargeMessages : public Engine {
 protected:
  static void expect_same(const Buffer &target, std::size_t at, const Buffer &source, std::size_t size) {
    EXPECT_EQ(std::memcmp(target.memory.data() + at, source.memory.data(), size), 0);
  }
};

TEST_P(LargeMessages, ArriveWhole_WhateverTheirSize) {
  constexpr std::size_t kMost = (3 << 20) + 17;
  Buffer queue(*server, kMost, 2, Purpose::kReceiveQueue);
  for (const std::size_t size : {8145ul, 8193ul, 12'289ul, 65'536ul, 1'048'577ul, kMost}) {
    Buffer message(*client, size, 1, Purpose::kSendSource);
    message.fill(static_cast<unsigned>(size));
    EXPECT_EQ(finish(send(message)).code, Code::kOk);
    const auto got = receive(queue.id());
    EXPECT_EQ(got.length, size);
    expect_same(queue, got.offset, message, size);
    EXPECT_TRUE((*server)->release(queue.id(), got.element).ok());
  }
}

TEST_P(LargeMessages, KeepTheirPlaceAmongSmallOnes) {
  Buffer queue(*server, kLarge, 7, Purpose::kReceiveQueue);
  std::vector<std::unique_ptr<Buffer>> messages;
  std::vector<RequestId> requests;
  for (unsigned i = 0; i < 7; ++i) {
    messages.push_back(std::make_unique<Buffer>(*client, i % 2 ? 100 + i : kLarge - i, 1, Purpose::kSendSource));
    messages.back()->fill(i);
    requests.push_back(send(*messages.back()));
  }
  std::vector<Event> events(7);
  ASSERT_TRUE((*client)->wait_all(requests, watchdog(), events).ok());
  for (unsigned i = 0; i < 7; ++i) {
    const auto got = receive(queue.id());
    EXPECT_EQ(events[i].code, Code::kOk);
    EXPECT_EQ(got.length, i % 2 ? 100 + i : kLarge - i);
    expect_same(queue, got.offset, *messages[i], got.length);
  }
}

/// More pieces than one message can name, on both sides; and pieces so small that they are copied together.
TEST_P(LargeMessages, GoFromAndToManyPieces) {
  constexpr std::size_t kPieces = 150, kOut = 5000, kIn = 5600;
  std::vector<std::byte> out(kPieces * kOut), in(kPieces * kIn * 2);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::byte>(i * 11 / 7);
  for (const std::size_t cut : {kOut, kOut / 50}) {
    std::vector<std::span<std::byte>> sources, targets;
    for (std::size_t at = 0; at < out.size(); at += cut) sources.emplace_back(out.data() + at, cut);
    for (std::size_t i = 0; i < kPieces; ++i) targets.emplace_back(in.data() + 2 * i * kIn, kIn);
    auto message = (*client)->register_segments(sources, Purpose::kSendSource);
    auto inbox = (*server)->register_segments(targets, Purpose::kReceiveDestination);
    ASSERT_TRUE(message.ok() && inbox.ok());
    RequestId request;
    ASSERT_TRUE((*client)->send(peer, message->local(), &*inbox, &request).ok());
    EXPECT_EQ(finish(request).code, Code::kOk);
    EXPECT_EQ(receive(inbox->local()).length, out.size());
    bool same = true;
    for (std::size_t i = 0; i < out.size(); ++i) same = same && in[i / kIn * 2 * kIn + i % kIn] == out[i];
    EXPECT_TRUE(same);
    EXPECT_EQ(in[kIn], std::byte{0});  // between the pieces
    EXPECT_TRUE((*client)->unregister(message->local()).ok());
    EXPECT_TRUE((*server)->unregister(inbox->local()).ok());
    std::fill(in.begin(), in.end(), std::byte{0});
  }
}

TEST_P(LargeMessages, WaitForAFullQueue_AndCanBeCancelledThere) {
  Buffer queue(*server, kLarge, 1, Purpose::kReceiveQueue);
  std::vector<std::unique_ptr<Buffer>> messages;
  std::vector<RequestId> requests;
  for (unsigned i = 0; i < 4; ++i) {
    messages.push_back(std::make_unique<Buffer>(*client, kLarge, 1, Purpose::kSendSource));
    messages.back()->fill(i);
    requests.push_back(send(*messages.back()));
  }
  EXPECT_EQ(finish(requests[0]).code, Code::kOk);
  EXPECT_EQ((*client)->wait(requests[1], Deadline::in(10ms)).code(), Code::kTimedOut);
  ASSERT_TRUE((*client)->cancel(requests[2]).ok());
  EXPECT_EQ(finish(requests[2]).code, Code::kCancelled);
  EXPECT_TRUE((*client)->unregister(messages[2]->id()).ok());
  for (const unsigned i : {0u, 1u, 3u}) {
    if (i > 0) { EXPECT_EQ(finish(requests[i]).code, Code::kOk); }
    const auto got = receive(queue.id());
    expect_same(queue, 0, *messages[i], kLarge);
    EXPECT_TRUE((*server)->release(queue.id(), got.element).ok());
  }
}

TEST_P(LargeMessages, CancelledOnTheirWay_ArriveOrDoNot_AndTheirSenderKnows) {
  Buffer queue(*server, kLarge, 1, Purpose::kReceiveQueue), message(*client, kLarge, 1, Purpose::kSendSource);
  message.fill(1);
  for (int i = 0; i < 10; ++i) {
    const auto request = send(message);
    for (int turns = 0; turns < i; ++turns) (void)(*client)->wait(message.id(), Purpose::kNone, Deadline::now()).ok();
    ASSERT_TRUE((*client)->cancel(request).ok());
    const auto code = finish(request).code;
    ASSERT_TRUE(code == Code::kOk || code == Code::kCancelled);
    if (code == Code::kCancelled) continue;
    const auto got = receive(queue.id());
    expect_same(queue, 0, message, kLarge);
    EXPECT_TRUE((*server)->release(queue.id(), got.element).ok());
  }
  EXPECT_EQ((*server)->wait(queue.id(), Purpose::kNone, Deadline::now()).code(), Code::kTimedOut);
}

TEST_P(LargeMessages, GoToManyBuffersAtOnce) {
  constexpr std::size_t kBuffers = 12;
  const auto size = [](unsigned i) { return kLarge + std::size_t{1000} * i; };
  std::vector<std::unique_ptr<Buffer>> sources, targets;
  std::vector<RequestId> requests;
  for (unsigned i = 0; i < kBuffers; ++i) {
    sources.push_back(std::make_unique<Buffer>(*client, size(i), 1, Purpose::kSendSource));
    targets.push_back(std::make_unique<Buffer>(*server, size(i), 1, Purpose::kReceiveDestination));
    sources.back()->fill(i);
  }
  for (unsigned i = 0; i < kBuffers; ++i) requests.push_back(send(*sources[i], &targets[i]->handle));
  std::vector<Event> events(kBuffers);
  ASSERT_TRUE((*client)->wait_all(requests, watchdog(), events).ok());
  for (unsigned i = 0; i < kBuffers; ++i) {
    EXPECT_EQ(events[i].code, Code::kOk);
    EXPECT_EQ(receive(targets[i]->id()).length, size(i));
    expect_same(*targets[i], 0, *sources[i], sources[i]->memory.size());
  }
}

TEST_P(LargeMessages, AreRefusedWithACode_WhereTheyCannotGo) {
  Buffer queue(*server, 1000, 1, Purpose::kReceiveQueue), message(*client, kLarge, 1, Purpose::kSendSource);
  EXPECT_EQ(finish(send(message)).code, Code::kTooLarge);
  auto gone = std::make_unique<Buffer>(*server, kLarge, 1, Purpose::kReceiveDestination);
  const auto handle = gone->handle;
  gone.reset();
  EXPECT_EQ(finish(send(message, &handle)).code, Code::kNotFound);
  EXPECT_TRUE((*client)->unregister(message.id()).ok());
}

INSTANTIATE_TEST_SUITE_P(Transports, LargeMessages, testing::ValuesIn(written_and_shared()),
                         [](const auto &info) { return info.param.name; });

// --- peers that die, or lie -------------------------------------------------------------------------------------------

/// A peer that knows the protocol and keeps to it as far as the test likes.
class Stranger final : public EventSink {
 public:
  explicit Stranger(const Subject &subject) {
    EndpointOptions options;
    options.transports = {subject.transport};
    options.listen = false;
    for (const auto &[key, value] : subject.settings) options.config.set(key, value);
    auto opened = Endpoint::open(std::move(options), *this);
    EXPECT_TRUE(opened.ok());
    if (opened.ok()) endpoint = std::move(*opened);
  }
  void on_message(PeerId, std::span<const std::byte> message) override {
    const auto control = wire::parse(message);
    ASSERT_TRUE(control);
    if (control->kind == Kind::kHello) return;
    heard.push_back(*control);
    pieces = wire::pieces_of(message.subspan(sizeof(Control)), control->length).value_or(std::vector<RemoteBuffer>());
  }
  void on_peer_lost(PeerId, const Error &) override { lost = true; }

  void connect(const std::string &url) {
    auto connected = endpoint->connect(url, watchdog());
    ASSERT_TRUE(connected.ok()) << connected.error().to_string();
    peer = *connected;
    say({.buffer = id.value});
  }
  void say(const Control &control, std::span<const std::byte> payload = {}) {
    std::vector<std::byte> message(sizeof control);
    std::memcpy(message.data(), &control, sizeof control);
    message.insert(message.end(), payload.begin(), payload.end());
    (void)endpoint->send(peer, message).ok();
  }
  template <class State> bool until(State state) {
    return test::until(state, [this] { endpoint->progress(); });
  }
  /// The next thing that the other side says, of that kind.
  Control hear(Kind kind) {
    EXPECT_TRUE(until([&] { return !heard.empty(); })) << "nothing was said";
    const auto control = heard.empty() ? Control() : heard.front();
    EXPECT_EQ(control.kind, kind);
    heard.clear();
    return control;
  }
  bool is_given_up() {
    return until([&] { return lost; });
  }
  /// Announces a message, all of which it will write.
  void announce(std::uint64_t operation, std::uint64_t length, std::uint64_t buffer = 0) {
    say({.kind = Kind::kSendLarge, .operation = operation, .buffer = buffer, .length = length});
  }
  void say_written(std::uint64_t transfer, Code code = Code::kOk) {
    say({.kind = Kind::kWritten, .buffer = transfer, .result = static_cast<std::uint64_t>(code)});
  }
  Code put(std::span<const std::byte> bytes) {
    conformance::Outcome outcome;
    endpoint->put(peer, pieces.at(0), 0, bytes, outcome);
    EXPECT_TRUE(until([&] { return outcome.times > 0; }));
    return outcome.status.code();
  }

  ProcessId id{0x5712a46e};
  PeerId peer;
  std::vector<Control> heard;
  std::vector<RemoteBuffer> pieces;  ///< that were named last
  bool lost = false;
  std::unique_ptr<Endpoint> endpoint;
};

class Strangers : public Engine {
 protected:
  void SetUp() override {
    Engine::SetUp();
    if (IsSkipped()) return;
    queue = std::make_unique<Buffer>(*server, kLarge, 1, Purpose::kReceiveQueue);
    message = std::make_unique<Buffer>(*client, kLarge, 1, Purpose::kSendSource);
    message->fill(3);
    stranger = std::make_unique<Stranger>(subject());
    stranger->connect((*server)->url());
  }
  /// Nothing is left of the stranger: the queue takes the next message, and can be unregistered.
  void expect_unharmed() const {
    EXPECT_EQ(finish(send(*message)).code, Code::kOk);
    const auto got = receive(queue->id());
    EXPECT_EQ(got.peer->process, (*client)->id());
    EXPECT_EQ(std::memcmp(queue->memory.data(), message->memory.data(), kLarge), 0);
    EXPECT_TRUE((*server)->release(queue->id(), got.element).ok());
    EXPECT_EQ((*server)->wait(queue->id(), Purpose::kNone, Deadline::now()).code(), Code::kTimedOut);
    EXPECT_TRUE((*server)->unregister(queue->id()).ok());
  }

  std::unique_ptr<Buffer> queue, message;
  std::unique_ptr<Stranger> stranger;
};

TEST_P(Strangers, SenderThatKeepsToTheProtocol_IsHeard) {
  stranger->announce(7, kLarge);
  const auto asked = stranger->hear(Kind::kWriteTo);
  EXPECT_EQ(asked.operation, 7u);
  EXPECT_EQ(asked.offset, 0u);
  EXPECT_EQ(asked.length, kLarge);
  EXPECT_EQ(stranger->put(message->memory), Code::kOk);
  stranger->say_written(asked.buffer);
  const auto sent = stranger->hear(Kind::kSent);
  EXPECT_EQ(sent.operation, 7u);
  EXPECT_EQ(received_code(sent.result), Code::kOk);
  const auto got = receive(queue->id());
  EXPECT_EQ(std::memcmp(queue->memory.data(), message->memory.data(), kLarge), 0);
  EXPECT_TRUE((*server)->release(queue->id(), got.element).ok());
  expect_unharmed();
}

TEST_P(Strangers, SenderThatLeavesBeforeItIsAsked_LeavesNothing) {
  stranger->announce(7, kLarge);
  stranger.reset();
  expect_unharmed();
}

TEST_P(Strangers, SenderThatLeavesBeforeItHasWritten_LeavesNothing) {
  stranger->announce(7, kLarge);
  (void)stranger->hear(Kind::kWriteTo);
  stranger.reset();
  expect_unharmed();
}

TEST_P(Strangers, SenderThatLeavesWithoutSayingSo_LeavesNothing) {
  stranger->announce(7, kLarge);
  (void)stranger->hear(Kind::kWriteTo);
  EXPECT_EQ(stranger->put(message->memory), Code::kOk);
  stranger.reset();
  expect_unharmed();
}

TEST_P(Strangers, SenderThatCouldNotWrite_FreesTheElement) {
  stranger->announce(7, kLarge);
  stranger->say_written(stranger->hear(Kind::kWriteTo).buffer, Code::kIo);
  EXPECT_EQ(received_code(stranger->hear(Kind::kSent).result), Code::kIo);
  expect_unharmed();
}

TEST_P(Strangers, SenderThatTakesBackWhatItIsAskedToWrite_IsNotAnswered_AndMayGoOn) {
  stranger->announce(7, kLarge);
  const auto asked = stranger->hear(Kind::kWriteTo);
  stranger->say({.kind = Kind::kWithdraw, .operation = 7});
  EXPECT_EQ(stranger->put(message->memory), Code::kOk);
  stranger->say_written(asked.buffer);
  EXPECT_EQ(received_code(stranger->hear(Kind::kSent).result), Code::kOk);
  EXPECT_TRUE((*server)->release(queue->id(), receive(queue->id()).element).ok());
  expect_unharmed();
}

TEST_P(Strangers, NobodyWritesOnceHeHasSaidThatItIsWritten) {
  stranger->announce(7, kLarge);
  const auto asked = stranger->hear(Kind::kWriteTo);
  const auto pieces = stranger->pieces;
  stranger->say_written(asked.buffer);
  (void)stranger->hear(Kind::kSent);
  stranger->pieces = pieces;
  const auto before = queue->memory;
  EXPECT_NE(stranger->put(std::vector<std::byte>(kLarge, std::byte{9})), Code::kOk);
  EXPECT_EQ(queue->memory, before);
  EXPECT_TRUE((*server)->release(queue->id(), receive(queue->id()).element).ok());
  expect_unharmed();
}

TEST_P(Strangers, WhoSaysThatItIsWritten_WithoutHavingBeenAsked_IsGivenUp) {
  stranger->say_written(0x1'8000'0000);
  EXPECT_TRUE(stranger->is_given_up());
  expect_unharmed();
}

TEST_P(Strangers, WhoSaysSoTwice_IsGivenUp) {
  stranger->announce(7, kLarge);
  const auto asked = stranger->hear(Kind::kWriteTo);
  stranger->say_written(asked.buffer);
  stranger->say_written(asked.buffer);
  EXPECT_TRUE(stranger->is_given_up());
  EXPECT_TRUE((*server)->release(queue->id(), receive(queue->id()).element).ok());
  expect_unharmed();
}

TEST_P(Strangers, WhoSaysSoOfAnothersMessage_IsGivenUp_AndTheOtherGoesOn) {
  stranger->announce(7, kLarge);
  const auto asked = stranger->hear(Kind::kWriteTo);
  Stranger other(subject());
  other.id = {77};
  other.connect((*server)->url());
  other.say_written(asked.buffer);
  EXPECT_TRUE(other.is_given_up());
  EXPECT_EQ(stranger->put(message->memory), Code::kOk);
  stranger->say_written(asked.buffer);
  EXPECT_EQ(received_code(stranger->hear(Kind::kSent).result), Code::kOk);
  EXPECT_TRUE((*server)->release(queue->id(), receive(queue->id()).element).ok());
  expect_unharmed();
}

TEST_P(Strangers, SourceThatIsNotAsLargeAsItIsSaidToBe_IsRefused) {
  const std::vector<RemoteBuffer> source(1, {1, 2, 300, 4, 5, Rights::kRemoteRead});
  Control control{.kind = Kind::kSendLarge};
  control.offset = control.length = kLarge;
  stranger->say(control, std::as_bytes(std::span(source)));
  EXPECT_EQ(received_code(stranger->hear(Kind::kSent).result), Code::kBadMessage);
  expect_unharmed();
}

// --- and strangers that receive ---

class StrangeReceivers : public Engine {
 protected:
  void SetUp() override {
    Engine::SetUp();
    if (IsSkipped()) return;
    stranger = std::make_unique<Stranger>(subject());
    stranger->connect((*server)->url());
    message = std::make_unique<Buffer>(*server, kLarge, 1, Purpose::kSendSource);
    message->fill(5);
    ASSERT_TRUE(stranger->until([&] { return (*server)->find_peer(stranger->id) != nullptr; }));
    ASSERT_TRUE((*server)->send(stranger->id, message->id(), nullptr, &request).ok());
    announced = stranger->hear(Kind::kSendLarge);
    EXPECT_EQ(announced.length, kLarge);
  }
  /// Wants [offset, offset + length) written to its memory, of which it says that there is `size`.
  void ask_for(std::uint64_t offset, std::uint64_t length, std::uint64_t size) {
    auto registered = stranger->endpoint->register_memory(memory, Rights::kRemoteWrite);
    auto remote = registered->describe_for(stranger->peer);
    ASSERT_TRUE(remote.ok());
    remote->size_bytes = size;
    exposed = std::move(*registered);
    stranger->say(
        {.kind = Kind::kWriteTo, .operation = announced.operation, .buffer = 99, .offset = offset, .length = length},
        conformance::raw(*remote));
  }
  Code how_it_ends() const {
    auto event = (*server)->wait(request, watchdog());
    EXPECT_TRUE(event.ok());
    EXPECT_TRUE((*server)->unregister(message->id()).ok());
    return event.ok() ? event->code : Code::kInternal;
  }

  std::vector<std::byte> memory = std::vector<std::byte>(kLarge);
  std::unique_ptr<Stranger> stranger;
  RegisteredBuffer exposed;
  std::unique_ptr<Buffer> message;
  RequestId request;
  Control announced;
};

TEST_P(StrangeReceivers, WhoLeavesBeforeItHasRoom_IsLost) {
  stranger->endpoint->disconnect(stranger->peer);
  EXPECT_EQ(how_it_ends(), Code::kPeerLost);
}

TEST_P(StrangeReceivers, WhoLeavesWhileItIsWrittenTo_IsLost) {
  ask_for(announced.offset, kLarge - announced.offset, kLarge - announced.offset);
  exposed.reset();
  stranger->endpoint->disconnect(stranger->peer);
  EXPECT_EQ(how_it_ends(), Code::kPeerLost);
}

TEST_P(StrangeReceivers, WhoAsksInPieces_GetsThem) {
  for (auto at = announced.offset; at < kLarge;) {
    const auto size = std::min<std::uint64_t>(kLarge - at, 70'000);
    ask_for(at, size, size);
    EXPECT_EQ(received_code(stranger->hear(Kind::kWritten).result), Code::kOk);
    EXPECT_EQ(std::memcmp(memory.data(), message->memory.data() + at, size), 0);
    at += size;
  }
  stranger->say({.kind = Kind::kSent, .operation = announced.operation});
  EXPECT_EQ(how_it_ends(), Code::kOk);
}

TEST_P(StrangeReceivers, WhoseMemoryIsGone_IsToldSo) {
  ask_for(announced.offset, kLarge - announced.offset, kLarge - announced.offset);
  exposed.reset();
  const auto code = received_code(stranger->hear(Kind::kWritten).result);
  if (code == Code::kOk) GTEST_SKIP() << "it was written before it was gone";
  EXPECT_EQ(code, Code::kRefused);
}

TEST_P(StrangeReceivers, WhoAsksForMoreThanTheMessageIs_IsGivenUp) {
  ask_for(announced.offset, kLarge - announced.offset + 1, kLarge - announced.offset + 1);
  EXPECT_TRUE(stranger->is_given_up());
  EXPECT_EQ(how_it_ends(), Code::kPeerLost);
}

TEST_P(StrangeReceivers, WhoAsksForWhatItHas_IsGivenUp) {
  ask_for(announced.offset + 1, 10, 10);
  EXPECT_TRUE(stranger->is_given_up());
  EXPECT_EQ(how_it_ends(), Code::kPeerLost);
}

TEST_P(StrangeReceivers, WhoseMemoryIsNotOfTheSizeThatItSays_IsGivenUp) {
  ask_for(announced.offset, 10, 11);
  EXPECT_TRUE(stranger->is_given_up());
  EXPECT_EQ(how_it_ends(), Code::kPeerLost);
}

// --- which is faster --------------------------------------------------------------------------------------------------

TEST(RendezvousTimes, SharingStartsWhereItBeginsToPay) {
  EXPECT_EQ(faster_shared_from({{10, 50}, {30, 50}}), 1u << 20);
  EXPECT_EQ(faster_shared_from({{10, 60}, {10, 30}}), 64u << 10);
  EXPECT_EQ(faster_shared_from({{10, 60}, {5, 30}}), 64u << 10);
}

TEST(RendezvousTimes, SharingThatIsHardlyFasterNeverStarts) {
  EXPECT_EQ(faster_shared_from({{10, 50}, {20, 60}}), Rendezvous::kNever);
  EXPECT_EQ(faster_shared_from({{10, 50}, {20, 58}}), Rendezvous::kNever);
  EXPECT_EQ(faster_shared_from({{10, 50}, {9000, 9020}}), Rendezvous::kNever);
}

TEST(RendezvousSettings, SayWhatTheyMean_OrAreRefused) {
  auto settings = [](const char *write_from, const char *percent) {
    nessie::Config config;
    config.set("nnti.rendezvous.write_from", write_from);
    config.set("nnti.rendezvous.read_percent", percent);
    return RendezvousSettings::from(config);
  };
  EXPECT_EQ(settings("1M", "25")->write_from, 1u << 20);
  EXPECT_EQ(settings("1M", "25")->read_percent, 25u);
  EXPECT_EQ(settings("never", "0")->write_from, Rendezvous::kNever);
  EXPECT_FALSE(settings("measured", "0")->write_from);
  for (const char *percent : {"-1", "101", "half"}) EXPECT_EQ(settings("1M", percent).code(), Code::kInvalidArgument);
  EXPECT_EQ(settings("sometimes", "1").code(), Code::kInvalidArgument);
}

TEST(RendezvousParts, AreWholePagesFromTheFront) {
  const Rendezvous half{100'000, 50};
  EXPECT_EQ(readable_part(half, 99'999), 99'999u);
  EXPECT_EQ(readable_part(half, 100'000), 49'152u);
  EXPECT_EQ(readable_part({0, 0}, 100'000), 0u);
  EXPECT_EQ(readable_part({0, 100}, 4'095), 0u);
}

class Thresholds : public Engine {};

TEST_P(Thresholds, AreMeasuredOnce_BesideWhatElseGoesOn) {
  Buffer queue(*server, kLarge, 4, Purpose::kReceiveQueue), message(*client, kLarge, 1, Purpose::kSendSource);
  message.fill(8);
  const auto before = send(message);
  const auto found = (*client)->rendezvous_with(peer, watchdog());
  ASSERT_TRUE(found.ok()) << found.error().to_string();
  EXPECT_NE(found->origin, Rendezvous::Origin::kConfigured);
  EXPECT_EQ(finish(before).code, Code::kOk);
  EXPECT_EQ(finish(send(message)).code, Code::kOk);
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(std::memcmp(queue.memory.data() + receive(queue.id()).offset, message.memory.data(), kLarge), 0);
  EXPECT_EQ((*server)->wait(queue.id(), Purpose::kNone, Deadline::now()).code(), Code::kTimedOut);
  if (found->origin != Rendezvous::Origin::kMeasured) return;  // too slow here to find out
  const auto again = (*client)->rendezvous_with(peer, Deadline::now());
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->write_from, found->write_from);
}

TEST_P(Thresholds, ThatAreConfigured_AreNotMeasured) {
  auto told = subject();
  told.settings.emplace_back("nnti.rendezvous.write_from", "123456");
  Node other(told);
  auto connected = other->connect((*server)->url(), watchdog());
  ASSERT_TRUE(connected.ok());
  const auto found = other->rendezvous_with((*connected)->process, Deadline::now());
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->origin, Rendezvous::Origin::kConfigured);
  EXPECT_EQ(found->write_from, 123456u);
  EXPECT_EQ(other->rendezvous_with({1}, watchdog()).code(), Code::kPeerLost);
}

TEST_P(Thresholds, BeyondWhichNothingIsPushed_CanBeSet) {
  auto told = subject();
  told.settings.emplace_back("nnti.eager_max", "0");
  Node other(told);
  auto connected = other->connect((*server)->url(), watchdog());
  ASSERT_TRUE(connected.ok());
  Buffer queue(*server, 64, 1, Purpose::kReceiveQueue), message(other, 8, 1, Purpose::kSendSource);
  message.word(0) = 4711;
  RequestId request;
  ASSERT_TRUE(other->send((*connected)->process, message.id(), nullptr, &request).ok());
  EXPECT_EQ(other->wait(request, watchdog())->code, Code::kOk);
  EXPECT_EQ(receive(queue.id()).length, 8u);
  EXPECT_EQ(queue.word(0), 4711u);
  ContextOptions options;
  options.transports = {"inproc"};
  options.config.set("nnti.eager_max", "8193");
  EXPECT_EQ(Context::open(std::move(options)).code(), Code::kInvalidArgument);
}

constexpr std::uint64_t kScratch = 2;  ///< the id of every context's scratch buffer

TEST_P(Strangers, ScratchBufferIsOnePeersAtATime_AndNotTheApplications) {
  stranger->announce(7, 100'000, kScratch);
  const auto asked = stranger->hear(Kind::kWriteTo);
  Stranger other(subject());
  other.id = {77};
  other.connect((*server)->url());
  other.announce(8, 100, kScratch);
  EXPECT_EQ(received_code(other.hear(Kind::kSent).result), Code::kBusy);
  stranger->announce(9, 100, kScratch);  // one message at a time
  EXPECT_EQ(received_code(stranger->hear(Kind::kSent).result), Code::kBusy);
  stranger->say_written(asked.buffer);
  EXPECT_EQ(received_code(stranger->hear(Kind::kSent).result), Code::kOk);
  stranger->announce(10, 2 << 20, kScratch);
  EXPECT_EQ(received_code(stranger->hear(Kind::kSent).result), Code::kTooLarge);
  EXPECT_EQ((*server)->unregister({kScratch}).code(), Code::kNotFound);
  EXPECT_EQ((*server)->memory_of({kScratch}).code(), Code::kNotFound);
  stranger.reset();
  other.announce(11, 100, kScratch);
  while (true) {  // until the server has noticed that the first one has left
    const auto heard = other.heard.size();
    ASSERT_TRUE(other.until([&] { return other.heard.size() > heard; }));
    if (other.heard.back().kind == Kind::kWriteTo) break;
    other.announce(11, 100, kScratch);
  }
  other.say_written(other.heard.back().buffer);
  expect_unharmed();
}

TEST_P(Strangers, WhoLeavesInTheMiddleOfAMeasurement_GivesTheScratchBufferBack) {
  stranger->announce(7, 100'000, kScratch);
  (void)stranger->hear(Kind::kWriteTo);
  stranger.reset();
  Stranger next(subject());
  next.id = {77};
  next.connect((*server)->url());
  for (bool had = false; !had; had = next.hear(next.heard[0].kind).kind == Kind::kWriteTo) {
    next.announce(8, 100, kScratch);
    ASSERT_TRUE(next.until([&] { return !next.heard.empty(); }));
  }
  expect_unharmed();
}

INSTANTIATE_TEST_SUITE_P(Transports, Thresholds, testing::ValuesIn(conformance::subjects_for_upper_floors()),
                         [](const auto &info) { return info.param.name; });

/// The plain ones of all transports are enough here.
std::vector<Subject> plain_subjects() {
  std::vector<Subject> plain;
  for (const auto &subject : written_and_shared())
    for (const std::string name : {"inproc", "shm", "ofi", "faulty_inproc"})
      if (subject.name == name + "_written" || subject.name == name + "_shared") plain.push_back(subject);
  return plain;
}

TEST_P(Strangers, DoNotPassForTheContextItself) {
  Stranger pretender(subject());
  pretender.id = (*server)->id();
  pretender.connect((*server)->url());
  EXPECT_TRUE(pretender.is_given_up());
  EXPECT_EQ((*server)->find_peer((*server)->id()), nullptr);
  expect_unharmed();
}

INSTANTIATE_TEST_SUITE_P(Transports, Strangers, testing::ValuesIn(plain_subjects()),
                         [](const auto &info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(Transports, StrangeReceivers, testing::ValuesIn(plain_subjects()),
                         [](const auto &info) { return info.param.name; });

}  // namespace
}  // namespace nnti::engine_test

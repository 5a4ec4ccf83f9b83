// SPDX-License-Identifier: BSD-3-Clause
#include "services/streams/sinks/receive.hpp"
#include "services/streams/sinks/send.hpp"

#include "services/streams/sinks/testing/memory_step.hpp"

#include <base/crc32c.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <thread>

namespace nessie::streams::sinks {
namespace {

using testing::MemoryStep;

MemoryStep small_step(std::uint64_t number) {
  MemoryStep step(number);
  step.add({"t", Type::kDouble, {}, {}, false}, std::vector<double>{static_cast<double>(number)});
  return step;
}

/// Remembers what it was given, and forgets nothing.
class Memory : public Keeper {
 public:
  Status keep(const Opening &from, std::uint64_t number, std::span<const std::byte> image) override {
    if (number == refused_) return Error{Code::kIo, "the disk is full"};
    if (!steps_.contains(number)) ++kept_;
    steps_[number] = Bytes(image.begin(), image.end());
    stream_ = from.stream;
    return {};
  }
  std::uint64_t kept() const override { return kept_; }

  std::map<std::uint64_t, Bytes> steps_;
  std::string stream_;
  std::uint64_t refused_ = ~0ull, kept_ = 0;
};

/// A receiver in a thread of its own.
class Running {
 public:
  explicit Running(Keeper &keeper, std::uint64_t most = 1 << 20) {
    ReceiverOptions options;
    options.most_image_bytes = most;
    options.stop = [this] { return stop_.load(); };
    auto receiver = Receiver::open(std::move(options));
    EXPECT_TRUE(receiver.ok());
    where_ = *HostPort::parse(receiver->address());
    thread_ = std::thread([this, &keeper, receiver = std::make_shared<Receiver>(*std::move(receiver))] {
      status_ = receiver->run(keeper);
    });
  }
  ~Running() { (void)end(); }
  const HostPort &where() const { return where_; }
  Status join() { return thread_.joinable() ? (thread_.join(), status_) : status_; }
  Status end() {
    stop_ = true;
    return join();
  }

 private:
  std::atomic<bool> stop_ = false;
  HostPort where_;
  Status status_;
  std::thread thread_;
};

Sender sender_to(const HostPort &where) {
  SenderOptions options;
  options.to = where;
  options.origin = {"flow", 7};
  options.patience = std::chrono::seconds(20);
  return Sender(std::move(options));
}

Fd connect(const HostPort &where) { return *connect_to(where, Deadline::in(std::chrono::seconds(20))); }

void say(const Fd &socket, const Bytes &bytes) {
  ASSERT_TRUE(send_all(socket, bytes, Deadline::in(std::chrono::seconds(20))).ok());
}

Answer hear(const Fd &socket) {
  Bytes bytes(kAnswerBegin);
  if (!receive_all(socket, bytes, Deadline::in(std::chrono::seconds(20))).ok()) return {false, 0, "nothing"};
  const auto rest = rest_of_answer(bytes);
  bytes.resize(kAnswerBegin + rest.value());
  const auto got = receive_all(socket, std::span(bytes).subspan(kAnswerBegin), Deadline::in(std::chrono::seconds(20)));
  return got.ok() ? *decode_answer(bytes) : Answer{false, 0, "nothing"};
}

TEST(TcpSender, HandsOnEachStepUntilTheStreamEnds) {
  Memory memory;
  Running receiver(memory);
  auto sender = sender_to(receiver.where());
  for (std::uint64_t number = 0; number < 5; ++number) {
    auto each = small_step(number);
    ASSERT_TRUE(sender.take(each).ok());
    EXPECT_EQ(memory.steps_.count(number), 1u);  // it is there when take() returns
  }
  EXPECT_TRUE(sender.finish().ok());
  EXPECT_TRUE(receiver.join().ok());
  EXPECT_EQ(memory.kept(), 5u);
  EXPECT_EQ(memory.stream_, "flow");
  auto file = *open_image(memory.steps_[3]);
  auto got = *FileStep::open(file, 0);
  EXPECT_EQ(testing::values_of<double>(got, "t"), std::vector<double>{3});
}

TEST(TcpSender, SendsAgainWhatWasNotAnsweredWhenTheConnectionIsLost) {
  const auto listener = *listen_at({"127.0.0.1", "0"});
  auto sender = sender_to(*HostPort::parse(address_of(listener)));
  std::thread other([&] {  // takes the first step, and is gone before it has answered; then it answers
    for (int attempt = 0; attempt < 2; ++attempt) {
      const auto socket = *accept_from(listener, Deadline::in(std::chrono::seconds(20)));
      Bytes bytes(kOpeningBegin + 4 + 4 + kHeadBytes);
      ASSERT_TRUE(receive_all(socket, bytes, Deadline::in(std::chrono::seconds(20))).ok());
      const auto head = *decode_head(std::span(bytes).last(kHeadBytes));
      Bytes image(head.image_bytes);
      ASSERT_TRUE(receive_all(socket, image, Deadline::in(std::chrono::seconds(20))).ok());
      EXPECT_EQ(head.number, 4u);
      EXPECT_EQ(crc32c(image), head.image_checksum);
      if (attempt == 1) say(socket, encode(Answer{true, 4, {}}));
    }
  });
  auto each = small_step(4);
  EXPECT_TRUE(sender.take(each).ok());
  EXPECT_EQ(sender.connections(), 2u);
  EXPECT_EQ(sender.wanted(), 5u);
  other.join();
}

TEST(TcpSender, GivesUpWhenTheReceiverCannotTakeAStep) {
  Memory memory;
  memory.refused_ = 1;
  Running receiver(memory);
  auto sender = sender_to(receiver.where());
  auto first = small_step(0), second = small_step(1);
  ASSERT_TRUE(sender.take(first).ok());
  const auto refused = sender.take(second);
  EXPECT_EQ(refused.code(), Code::kRefused);
  EXPECT_NE(refused.error().message.find("the disk is full"), std::string::npos);
  EXPECT_EQ(receiver.join().code(), Code::kIo);
}

TEST(TcpReceiver, RefusesImagesThatAreTooLarge) {
  Memory memory;
  Running receiver(memory, 100);
  auto sender = sender_to(receiver.where());
  auto first = small_step(0);
  EXPECT_EQ(sender.take(first).code(), Code::kRefused);
  EXPECT_EQ(receiver.join().code(), Code::kTooLarge);
}

TEST(TcpReceiver, ClosesOnWhatIsNoStepAndServesTheNext) {
  Memory memory;
  Running receiver(memory);
  const auto rubbish = connect(receiver.where());
  say(rubbish, Bytes(200, std::byte{'x'}));
  std::byte end{};
  EXPECT_EQ(receive_all(rubbish, {&end, 1}, Deadline::in(std::chrono::seconds(20))).code(), Code::kPeerLost);
  const auto wrong = connect(receiver.where());
  say(wrong, encode(Opening{"flow", 7}));
  say(wrong, encode(Head{false, 0, 3, 99}));  // the image has another checksum
  say(wrong, Bytes(3, std::byte{1}));
  EXPECT_EQ(receive_all(wrong, {&end, 1}, Deadline::in(std::chrono::seconds(20))).code(), Code::kPeerLost);
  auto sender = sender_to(receiver.where());
  auto each = small_step(0);
  EXPECT_TRUE(sender.take(each).ok());
  EXPECT_EQ(memory.kept(), 1u);
}

TEST(TcpReceiver, TakesTheNewerOfTwoConnections) {
  Memory memory;
  Running receiver(memory);
  const auto silent = connect(receiver.where());
  say(silent, encode(Opening{"flow", 7}));
  say(silent, encode(Head{false, 0, 1000, 0}));  // and nothing more: its network is gone
  auto sender = sender_to(receiver.where());
  auto each = small_step(0);
  EXPECT_TRUE(sender.take(each).ok());
}

TEST(TcpReceiver, AnswersOnceMoreToWhatItHas) {
  Memory memory;
  Running receiver(memory);
  const Bytes image(3, std::byte{5});
  for (int time = 0; time < 2; ++time) {
    const auto socket = connect(receiver.where());
    say(socket, encode(Opening{"flow", 7}));
    say(socket, encode(Head{false, 9, 3, crc32c(image)}));
    say(socket, image);
    EXPECT_EQ(hear(socket), (Answer{true, 9, {}}));
  }
  EXPECT_EQ(memory.kept(), 1u);
}

TEST(TcpAddress, IsHostAndPort) {
  EXPECT_EQ(HostPort::parse("node7:80")->host, "node7");
  EXPECT_EQ(HostPort::parse("[::1]:80")->host, "::1");
  for (const char *wrong : {"node7", "node7:", "node7:x", "node7:65536", ""})
    EXPECT_EQ(HostPort::parse(wrong).code(), Code::kInvalidArgument) << wrong;
}

}  // namespace
}  // namespace nessie::streams::sinks

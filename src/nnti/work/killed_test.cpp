// SPDX-License-Identifier: BSD-3-Clause
// Large messages both ways with another process, which is killed at any moment: what had arrived is whole, what was
// under way ends with a code, and everything that it used can be used again. With messages that are read, written, and
// both at once.
#include "nnti/work/pair.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <deque>
#include <random>

namespace nnti::engine_test {
namespace {

constexpr std::size_t kLeast = 100'000, kMost = 2'000'000, kElements = 4, kAtOnce = 6;
constexpr int kRounds = conformance::kSanitized ? 2 : 4;

struct Way {
  const char *name, *write_from, *read_percent;
};
constexpr Way kWays[] = {{"read", "never", "100"}, {"written", "0", "0"}, {"shared", "0", "50"}};

std::vector<Subject> subjects_here() {
  std::vector<Subject> all;
  for (const auto &way : kWays)
    for (auto subject : conformance::subjects_for_upper_floors()) {
      if (!subject.between_processes) continue;
      subject.name += std::string("_") + way.name;
      subject.settings.emplace_back("nnti.rendezvous.write_from", way.write_from);
      subject.settings.emplace_back("nnti.rendezvous.read_percent", way.read_percent);
      all.push_back(std::move(subject));
    }
  return all;
}

/// A message that tells by itself whether it is whole: its number, then bytes that follow from that.
struct Message {
  Message(const Node &node, std::size_t size) : buffer(node, size, 1, Purpose::kSendSource) {}
  void write(std::uint64_t number) {
    buffer.fill(static_cast<unsigned>(number));
    buffer.word(0) = number;
  }
  static bool is_whole(std::span<const std::byte> bytes) {
    std::uint64_t number = 0;
    if (bytes.size() < kLeast) return false;
    std::memcpy(&number, bytes.data(), sizeof number);
    for (std::size_t i = sizeof number; i < bytes.size(); ++i)
      if (bytes[i] != static_cast<std::byte>(static_cast<unsigned>(number) + i * 7)) return false;
    return true;
  }

  Buffer buffer;
  RequestId request;
  bool under_way = false;
};

// --- the process that is killed -----------------------------------------------------------------------------------------

/// Sends back whatever comes.
void echo(const Node &node) {
  Buffer queue(node, kMost, kElements, Purpose::kReceiveQueue);
  std::deque<Message> answers;
  for (;;) {
    const auto event = node->wait(queue.id(), Purpose::kNone, Deadline::in(10ms));
    while (!answers.empty() && node->wait(answers.front().request, Deadline::now()).ok()) answers.pop_front();
    if (!event.ok()) continue;
    auto &answer = answers.emplace_back(node, event->length);
    std::memcpy(answer.buffer.memory.data(), queue.memory.data() + event->offset, event->length);
    (void)node->release(queue.id(), event->element).ok();
    if (!node->send(event->peer->process, answer.buffer.id(), nullptr, &answer.request).ok()) answers.pop_back();
  }
}

int run_echo(std::string_view name, std::string_view credential) {
  ::alarm(120);  // whatever happens, no orphan stays
  const auto subjects = subjects_here();
  const auto subject = std::ranges::find(subjects, name, &Subject::name);
  auto parsed = nessie::Credential::from_hex(credential);
  if (subject == subjects.end() || !parsed.ok()) return 2;
  const Node node(*subject, *parsed);
  std::printf("%s\n", node->url().c_str());
  std::fflush(stdout);
  echo(node);
  return 0;
}

// --- the one that lives on ----------------------------------------------------------------------------------------------

class Killed : public conformance::Conformance {
 protected:
  void SetUp() override {
    Conformance::SetUp();
    if (IsSkipped()) return;
    node = std::make_unique<Node>(subject(), credential);
    ASSERT_TRUE(node->context);
    queue = std::make_unique<Buffer>(*node, kMost, kElements, Purpose::kReceiveQueue);
    for (std::size_t i = 0; i < kAtOnce; ++i)
      messages.push_back(std::make_unique<Message>(*node, kLeast + random() % (kMost - kLeast)));
  }

  /// Keeps all messages under way, and takes what comes back, until the deadline and `least` of them. Returns how many.
  int talk(ProcessId peer, Deadline until, int least) {
    int came = 0;
    for (const auto limit = watchdog(); !limit.passed() && !(until.passed() && came >= least);) {
      for (auto &message : messages) {
        if (message->under_way) continue;
        message->write(++number);
        message->under_way = (*node)->send(peer, message->buffer.id(), nullptr, &message->request).ok();
      }
      came += take(Deadline::in(1ms)) ? 1 : 0;
      for (auto &message : messages) {
        const auto event = message->under_way ? (*node)->wait(message->request, Deadline::now()) : failed();
        if (!event.ok()) continue;
        EXPECT_EQ(event->code, Code::kOk);
        message->under_way = false;
      }
    }
    return came;
  }
  bool take(Deadline deadline) {
    const auto event = (*node)->wait(queue->id(), Purpose::kNone, deadline);
    if (!event.ok()) return false;
    EXPECT_EQ(event->code, Code::kOk);
    EXPECT_TRUE(Message::is_whole(std::span(queue->memory).subspan(event->offset, event->length)));
    EXPECT_TRUE((*node)->release(queue->id(), event->element).ok());
    return true;
  }
  /// The peer is dead.
  void end_all() {
    for (auto &message : messages) {
      if (!std::exchange(message->under_way, false)) continue;
      const auto event = (*node)->wait(message->request, watchdog());
      ASSERT_TRUE(event.ok()) << event.error().to_string();
      EXPECT_TRUE(event->code == Code::kOk || event->code == Code::kPeerLost) << static_cast<int>(event->code);
    }
    while (take(Deadline::now())) {}
  }
  Code code_of_one_more(ProcessId peer) {
    RequestId request;
    const auto started = (*node)->send(peer, messages[0]->buffer.id(), nullptr, &request);
    if (!started.ok()) return started.code();
    const auto event = (*node)->wait(request, watchdog());
    return event.ok() ? event->code : event.code();
  }
  static Result<Event> failed() { return Error{Code::kNotFound, "not under way"}; }

  nessie::Credential credential = nessie::Credential::generate();
  std::unique_ptr<Node> node;
  std::unique_ptr<Buffer> queue;
  std::vector<std::unique_ptr<Message>> messages;
  std::uint64_t number = 0;
  std::mt19937 random{1};
};

TEST_P(Killed, ProcessLeavesWholeMessages_TypedErrors_AndFreeElements) {
  for (int round = 0; round < kRounds; ++round) {
    conformance::Child child(subject(), credential);
    const auto peer = (*node)->connect(child.url(), watchdog());
    ASSERT_TRUE(peer.ok()) << peer.error().to_string();
    // So all elements of the queue are free, whatever the one before was killed in.
    EXPECT_GE(talk((*peer)->process, Deadline::in(std::chrono::microseconds(random() % 20'000)), 2 * kElements),
              2 * static_cast<int>(kElements));
    child.kill();
    end_all();
    EXPECT_EQ(code_of_one_more((*peer)->process), Code::kPeerLost);
  }
  for (auto &message : messages) EXPECT_TRUE((*node)->unregister(message->buffer.id()).ok());
  EXPECT_TRUE((*node)->unregister(queue->id()).ok());
}

INSTANTIATE_TEST_SUITE_P(Over, Killed, testing::ValuesIn(subjects_here()), testing::PrintToStringParamName());

}  // namespace
}  // namespace nnti::engine_test

int main(int argc, char **argv) {
  if (argc > 3 && std::string_view(argv[1]) == "--child") return nnti::engine_test::run_echo(argv[2], argv[3]);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

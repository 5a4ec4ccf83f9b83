// SPDX-License-Identifier: BSD-3-Clause
// Requests, waiting, threads, queues, misuse; on every transport.
#include "nnti/work/pair.hpp"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <mutex>
#include <set>

namespace nnti::engine_test {
namespace {

class Waiting : public Engine {
 protected:
  /// So many messages, numbered, on their way to the server's queue.
  void send_numbered(int count) {
    for (int i = 0; i < count; ++i) {
      messages.push_back(std::make_unique<Buffer>(*client, 16, 1, Purpose::kSendSource));
      messages.back()->word(0) = messages.size() - 1;
      requests.push_back(send(*messages.back()));
    }
  }
  static std::uint64_t number_in(Buffer &queue, const Event &event) { return queue.word(event.offset / 8); }

  std::vector<std::unique_ptr<Buffer>> messages;
  std::vector<RequestId> requests;
};

TEST_P(Waiting, FullQueueHoldsTheMessages_TheirRequestsTimeOut_AndAllCompleteWhenItDrains) {
  Buffer queue(*server, 16, 2, Purpose::kReceiveQueue);
  send_numbered(8);
  EXPECT_EQ(finish(requests[0]).code, Code::kOk);
  EXPECT_EQ(finish(requests[1]).code, Code::kOk);
  EXPECT_EQ((*client)->wait(requests[2], Deadline::in(30ms)).code(), Code::kTimedOut);
  EXPECT_EQ((*client)->unregister(messages[2]->id()).code(), Code::kBusy);
  for (std::uint64_t i = 0; i < 8; ++i) {
    auto request = (*server)->create_request(queue.id());
    ASSERT_TRUE(request.ok());
    auto got = (*server)->wait(*request, watchdog());
    ASSERT_TRUE(got.ok()) << got.error().to_string();
    EXPECT_EQ(number_in(queue, *got), i);
    ASSERT_TRUE((*server)->destroy(*request).ok());
  }
  for (std::size_t i = 2; i < 8; ++i) EXPECT_EQ(finish(requests[i]).code, Code::kOk);
}

TEST_P(Waiting, MoreThanTheReceiverKeepsIsAskedForAgain) {
  constexpr std::size_t kSize = 2000;
  Buffer queue(*server, kSize, 1, Purpose::kReceiveQueue);
  Progress answers(*client);
  std::vector<std::unique_ptr<Buffer>> many;
  std::vector<RequestId> sent;
  for (std::size_t i = 0; i < 300; ++i) {
    many.push_back(std::make_unique<Buffer>(*client, kSize, 1, Purpose::kSendSource));
    many.back()->word(0) = i;
    sent.push_back(send(*many.back()));
  }
  auto request = (*server)->create_request(queue.id());
  for (std::size_t i = 0; i < 300; ++i) {
    auto got = (*server)->wait(*request, watchdog());
    ASSERT_TRUE(got.ok()) << got.error().to_string();
    ASSERT_EQ(queue.word(0), i);
    ASSERT_TRUE((*server)->clear(*request).ok());
    ASSERT_EQ(finish(sent[i]).code, Code::kOk);
  }
}

TEST_P(Waiting, ElementsGivenBackOutOfOrderLetMessagesIn) {
  Buffer queue(*server, 16, 2, Purpose::kReceiveQueue);
  send_numbered(3);
  const auto first = receive(queue.id()), second = receive(queue.id());
  EXPECT_EQ((*server)->wait(queue.id(), Purpose::kNone, Deadline::in(20ms)).code(), Code::kTimedOut);
  ASSERT_TRUE((*server)->release(queue.id(), second.element).ok());
  const auto third = receive(queue.id());
  EXPECT_EQ(number_in(queue, third), 2u);
  EXPECT_EQ(third.offset, second.offset);
  EXPECT_EQ(number_in(queue, first), 0u);
}

TEST_P(Waiting, CancelledSendDoesNotArrive_AndWhatHasArrivedIsNotCancelled) {
  Buffer queue(*server, 16, 1, Purpose::kReceiveQueue);
  send_numbered(3);
  const auto first = receive(queue.id());
  ASSERT_TRUE((*client)->cancel(requests[1]).ok());
  EXPECT_EQ(finish(requests[1]).code, Code::kCancelled);
  ASSERT_TRUE((*client)->cancel(requests[0]).ok());
  EXPECT_EQ(finish(requests[0]).code, Code::kOk);
  ASSERT_TRUE((*server)->release(queue.id(), first.element).ok());
  EXPECT_EQ(number_in(queue, receive(queue.id())), 2u);
  EXPECT_TRUE((*client)->unregister(messages[1]->id()).ok());
}

TEST_P(Waiting, CancelledReceiveCompletes_AndCanBeClearedToWaitAgain) {
  Buffer queue(*server, 16, 1, Purpose::kReceiveQueue);
  auto request = (*server)->create_request(queue.id());
  ASSERT_TRUE((*server)->cancel(*request).ok());
  auto cancelled = (*server)->wait(*request, watchdog());
  ASSERT_TRUE(cancelled.ok());
  EXPECT_EQ(cancelled->code, Code::kCancelled);
  ASSERT_TRUE((*server)->clear(*request).ok());
  send_numbered(1);
  auto got = (*server)->wait(*request, watchdog());
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got->code, Code::kOk);
}

TEST_P(Waiting, DestroyedRequestOfASend_LeavesNothingBehind) {
  Buffer queue(*server, 16, 1, Purpose::kReceiveQueue);
  send_numbered(2);
  (void)receive(queue.id());
  ASSERT_TRUE((*client)->destroy(requests[1]).ok());
  EXPECT_EQ((*client)->wait(requests[1], Deadline::now()).code(), Code::kNotFound);
  Progress answers(*client);
  const auto end = watchdog();
  while ((*client)->unregister(messages[1]->id()).code() == Code::kBusy && !end.passed()) std::this_thread::yield();
  EXPECT_EQ((*client)->unregister(messages[1]->id()).code(), Code::kNotFound);
}

TEST_P(Waiting, AnyAndAllTakeTheRightOnes_AndATimeoutTakesNone) {
  Buffer queue(*server, 16, 4, Purpose::kReceiveQueue);
  const RequestId wanted[] = {*(*server)->create_request(queue.id()), *(*server)->create_request(queue.id())};
  send_numbered(1);
  std::vector<Event> events(2);
  EXPECT_EQ((*server)->wait_all(wanted, Deadline::in(50ms), events).code(), Code::kTimedOut);
  Event event;
  auto which = (*server)->wait_any(wanted, watchdog(), event);
  ASSERT_TRUE(which.ok());
  EXPECT_EQ(*which, 0u);
  EXPECT_EQ(number_in(queue, event), 0u);
  ASSERT_TRUE((*server)->clear(wanted[0]).ok());
  send_numbered(2);
  ASSERT_TRUE((*server)->wait_all(wanted, watchdog(), events).ok());
  EXPECT_EQ(number_in(queue, events[0]), 1u);
  EXPECT_EQ(number_in(queue, events[1]), 2u);
}

TEST_P(Waiting, RequestThatIsDestroyedGivesAnUntakenMessageBack) {
  Buffer queue(*server, 16, 4, Purpose::kReceiveQueue);
  const RequestId wanted[] = {*(*server)->create_request(queue.id()), *(*server)->create_request(queue.id())};
  send_numbered(1);
  std::vector<Event> events(2);
  EXPECT_EQ(finish(requests[0]).code, Code::kOk);
  EXPECT_EQ((*server)->wait_all(wanted, Deadline::in(50ms), events).code(), Code::kTimedOut);
  ASSERT_TRUE((*server)->destroy(wanted[0]).ok());
  auto got = (*server)->wait(wanted[1], watchdog());
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(number_in(queue, *got), 0u);
}

TEST_P(Waiting, InterruptBeforeAWaitEndsTheNext_AndOnlyThat) {
  Buffer queue(*client, 16, 1, Purpose::kReceiveQueue);
  (*client)->interrupt();
  EXPECT_EQ((*client)->wait(queue.id(), Purpose::kNone, watchdog()).code(), Code::kInterrupted);
  EXPECT_EQ((*client)->wait(queue.id(), Purpose::kNone, Deadline::in(10ms)).code(), Code::kTimedOut);
}

TEST_P(Waiting, InterruptEndsTheWaitsOfAllThreads) {
  Buffer queue(*client, 16, 1, Purpose::kReceiveQueue);
  std::atomic<int> waiting{0}, interrupted{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      ++waiting;
      const auto code = (*client)->wait(queue.id(), Purpose::kNone, watchdog()).code();
      interrupted += code == Code::kInterrupted;
    });
  const auto end = watchdog();
  while (interrupted < 4 && !end.passed()) {
    if (waiting == 4) (*client)->interrupt();  // a thread may have counted itself, and not wait yet
    std::this_thread::yield();
  }
  for (auto &thread : threads) thread.join();
  EXPECT_EQ(interrupted, 4);
}

TEST_P(Waiting, ManyThreadsTakeTheMessagesOfOneQueue_EachOnce) {
  constexpr int kThreads = 6, kMessages = 300;
  Buffer queue(*server, 16, 3, Purpose::kReceiveQueue);
  std::mutex mutex;
  std::set<std::uint64_t> seen;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      auto request = (*server)->create_request(queue.id());
      for (int i = 0; i < kMessages / kThreads; ++i) {
        auto got = (*server)->wait(*request, watchdog());
        ASSERT_TRUE(got.ok()) << got.error().to_string();
        {
          std::lock_guard guard(mutex);
          EXPECT_TRUE(seen.insert(number_in(queue, *got)).second);
        }
        ASSERT_TRUE((*server)->clear(*request).ok());
      }
      ASSERT_TRUE((*server)->destroy(*request).ok());
    });
  send_numbered(kMessages);
  for (const auto request : requests) EXPECT_EQ(finish(request).code, Code::kOk);
  for (auto &thread : threads) thread.join();
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(kMessages));
}

TEST_P(Waiting, ThreadsWaitEachForTheirOwn) {
  Buffer target(*server, 64, 1, kTarget);
  std::vector<std::thread> threads;
  for (int t = 0; t < 5; ++t)
    threads.emplace_back([&] {
      Buffer mine(*client, 64, 1, kLocal);
      for (std::uint64_t i = 1; i <= 40; ++i) ASSERT_EQ(put(mine, target.handle, 0, i, 0), Code::kOk);
    });
  for (auto &thread : threads) thread.join();
}

TEST_P(Waiting, CloseEndsWaits_AndWhatComesAfterwards) {
  Node other(subject());
  Buffer queue(other, 16, 1, Purpose::kReceiveQueue);
  std::thread waiter([&] { EXPECT_EQ(other->wait(queue.id(), Purpose::kNone, watchdog()).code(), Code::kCancelled); });
  other->close();
  waiter.join();
  EXPECT_EQ(other->create_request(queue.id()).code(), Code::kCancelled);
  other->interrupt();
}

TEST_P(Waiting, DisconnectCancelsWhatIsPending_AndThePeerIsGone) {
  Buffer queue(*server, 16, 1, Purpose::kReceiveQueue);
  send_numbered(2);
  EXPECT_EQ(finish(requests[0]).code, Code::kOk);
  ASSERT_TRUE((*client)->disconnect(peer).ok());
  EXPECT_EQ(finish(requests[1]).code, Code::kCancelled);
  EXPECT_EQ((*client)->send(peer, messages[0]->id(), nullptr).code(), Code::kPeerLost);
  EXPECT_EQ((*client)->disconnect(peer).code(), Code::kNotFound);
  ASSERT_TRUE((*client)->connect((*server)->url(), watchdog()).ok());
}

TEST_P(Waiting, UnregisteredQueueAnswersTheMessagesThatWaitForIt) {
  auto queue = std::make_unique<Buffer>(*server, 16, 1, Purpose::kReceiveQueue);
  send_numbered(3);
  EXPECT_EQ(finish(requests[0]).code, Code::kOk);
  EXPECT_EQ((*client)->wait(requests[2], Deadline::in(30ms)).code(), Code::kTimedOut);
  queue.reset();
  EXPECT_EQ(finish(requests[1]).code, Code::kNotFound);
  EXPECT_EQ(finish(requests[2]).code, Code::kNotFound);
}

TEST_P(Waiting, BufferThatIsGoneIsNotFound_AlsoIfItWasReachedBefore) {
  auto target = std::make_unique<Buffer>(*server, 64, 1, kTarget);
  Buffer mine(*client, 64, 1, kLocal);
  const auto handle = target->handle;
  ASSERT_EQ(put(mine, handle, 0, 8, 0), Code::kOk);
  target.reset();
  EXPECT_EQ(put(mine, handle, 0, 8, 0), Code::kNotFound);
  auto forged = handle;
  forged.id ^= 0x10;
  EXPECT_EQ(get(forged, 0, 8, mine, 0), Code::kNotFound);
}

TEST_P(Waiting, MisuseHasACode_AndChangesNothing) {
  Buffer target(*server, 64, 1, kTarget | Purpose::kAtomics), hidden(*server, 64, 1, Purpose::kLocalWrite);
  Buffer queue(*server, 8, 1, Purpose::kReceiveQueue), mine(*client, 64, 1, kLocal);
  target.word(0) = 77;
  RequestId request{12345};
  auto &context = *client->context;
  EXPECT_EQ(context.put(mine.id(), 0, 65, target.handle, 0, &request).code(), Code::kOutOfRange);
  EXPECT_EQ(context.put(mine.id(), 1, UINT64_MAX, target.handle, 0, &request).code(), Code::kOutOfRange);
  EXPECT_EQ(context.put(mine.id(), 0, 60, target.handle, 5, &request).code(), Code::kOutOfRange);
  EXPECT_EQ(context.put(mine.id(), 0, 1, hidden.handle, 0, &request).code(), Code::kRefused);
  EXPECT_EQ(context.put({999}, 0, 1, target.handle, 0, &request).code(), Code::kNotFound);
  EXPECT_EQ(context.send(peer, mine.id(), &target.handle, &request).code(), Code::kRefused);
  EXPECT_EQ(context.send(peer, mine.id(), &queue.handle, &request).code(), Code::kTooLarge);
  EXPECT_EQ(context.send({1}, mine.id(), nullptr, &request).code(), Code::kPeerLost);
  EXPECT_EQ(context.fetch_add(target.handle, 4, 1, mine.id(), 0, &request).code(), Code::kInvalidArgument);
  EXPECT_EQ(context.fetch_add(target.handle, 0, 1, mine.id(), 4, &request).code(), Code::kInvalidArgument);
  EXPECT_EQ(context.fetch_add(target.handle, 64, 1, mine.id(), 0, &request).code(), Code::kOutOfRange);
  EXPECT_EQ(context.scatter(mine.id(), 1, {}, &request).code(), Code::kInvalidArgument);
  EXPECT_EQ(request.value, 12345u);
  EXPECT_EQ(context.wait(request, Deadline::now()).code(), Code::kNotFound);
  EXPECT_EQ(context.wait(mine.id(), Purpose::kReceiveQueue, Deadline::now()).code(), Code::kInvalidArgument);
  const BufferId twice[] = {mine.id(), mine.id()};
  Event event;
  EXPECT_EQ(context.wait_any(twice, Purpose::kNone, Deadline::now(), event).code(), Code::kInvalidArgument);
  EXPECT_EQ(context.wait_any(std::span<const BufferId>(), Purpose::kNone, Deadline::now(), event).code(),
            Code::kInvalidArgument);
  EXPECT_EQ(context.connect("no url", watchdog()).code(), Code::kInvalidArgument);
  EXPECT_EQ(context.connect("carrier-pigeon://roof", watchdog()).code(), Code::kUnsupported);
  EXPECT_EQ(target.word(0), 77u);
  EXPECT_EQ(context.wait(mine.id(), Purpose::kNone, Deadline::now()).code(), Code::kTimedOut);
}

TEST(WaitingInOneProcess, AtomicVariablesThatThereAreNotCannotBeNamed) {
  ContextOptions options;
  options.transports = {"inproc"};
  options.credential = nessie::Credential::generate();
  options.atomic_variables = 0;
  auto opened = Context::open(std::move(options));
  ASSERT_TRUE(opened.ok()) << opened.error().to_string();
  auto &context = **opened;
  const BufferId variables = context.variables_of(context.id()).local();
  EXPECT_EQ(context.send({1}, variables, nullptr).code(), Code::kNoMemory);
  EXPECT_EQ(context.memory_of(variables).code(), Code::kNoMemory);
  EXPECT_EQ(context.create_request(variables).code(), Code::kNoMemory);
  EXPECT_EQ(context.cancel(variables).code(), Code::kNoMemory);
}

TEST_P(Waiting, RegistrationThatMakesNoSenseIsRefused) {
  char byte = 0;
  auto &context = *client->context;
  auto code = [&](void *memory, std::uint64_t size, std::uint64_t count, Purpose purposes) {
    return context.register_memory(memory, size, count, purposes).code();
  };
  EXPECT_EQ(code(nullptr, 1, 1, Purpose::kLocalRead), Code::kInvalidArgument);
  EXPECT_EQ(code(&byte, 0, 1, Purpose::kLocalRead), Code::kInvalidArgument);
  EXPECT_EQ(code(&byte, UINT64_MAX, 2, Purpose::kLocalRead), Code::kInvalidArgument);
  EXPECT_EQ(code(&byte, 1, 1, Purpose::kNone), Code::kInvalidArgument);
  EXPECT_EQ(code(&byte, 1, 1, static_cast<Purpose>(0x4001)), Code::kInvalidArgument);
  EXPECT_EQ(code(&byte, 1, 1, Purpose::kReceiveQueue | Purpose::kRemoteWrite), Code::kInvalidArgument);
  EXPECT_EQ(code(&byte, 1, 1, Purpose::kAtomics), Code::kInvalidArgument);
  EXPECT_EQ(context.register_memory(&byte, 1, 1, Purpose::kLocalRead, {42}).code(), Code::kNotFound);
  EXPECT_EQ(context.register_segments({}, Purpose::kLocalRead).code(), Code::kInvalidArgument);
  const std::span<std::byte> empty[] = {{}};
  EXPECT_EQ(context.register_segments(empty, Purpose::kLocalRead).code(), Code::kInvalidArgument);
}

// --- completion queues ------------------------------------------------------------------------------------------------

TEST_P(Waiting, QueueTakesTheEventsOfBuffersAndRequests) {
  Buffer inbox(*server, 16, 4, Purpose::kReceiveQueue), other(*server, 16, 1, Purpose::kReceiveDestination);
  send_numbered(1);
  EXPECT_EQ(finish(requests[0]).code, Code::kOk);
  auto queue = (*server)->create_queue();
  ASSERT_TRUE(queue.ok());
  ASSERT_TRUE((*queue)->bind(inbox.id()).ok());  // the message that is there comes along
  auto request = (*server)->create_request(other.id());
  ASSERT_TRUE((*queue)->bind(*request).ok());
  EXPECT_EQ((*server)->wait(inbox.id(), Purpose::kNone, Deadline::now()).code(), Code::kInvalidArgument);
  EXPECT_EQ((*server)->wait(*request, Deadline::now()).code(), Code::kInvalidArgument);
  auto first = (*queue)->wait(watchdog());
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first->buffer, inbox.id());
  EXPECT_EQ(finish(send(*messages[0], &other.handle)).code, Code::kOk);
  auto second = (*queue)->wait(watchdog());
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->request, *request);
  EXPECT_EQ((*queue)->wait(Deadline::in(1ms)).code(), Code::kTimedOut);
  queue->reset();
  EXPECT_EQ(finish(send(*messages[0])).code, Code::kOk);
  EXPECT_EQ(receive(inbox.id()).code, Code::kOk);
}

TEST_P(Waiting, QueueTellsTheEndsOfOperations) {
  Buffer target(*server, 64, 1, kTarget), mine(*client, 64, 1, kLocal);
  auto queue = (*client)->create_queue();
  RequestId request;
  ASSERT_TRUE((*client)->put(mine.id(), 0, 64, target.handle, 0, &request).ok());
  ASSERT_TRUE((*queue)->bind(request).ok());
  auto event = (*queue)->wait(watchdog());
  ASSERT_TRUE(event.ok());
  EXPECT_EQ(event->request, request);
  EXPECT_EQ(event->code, Code::kOk);
  EXPECT_EQ((*client)->destroy(request).code(), Code::kNotFound);
}

TEST_P(Waiting, CallbackRunsOnceForEachEvent_InOrder_AndMayCallAnything) {
  Buffer inbox(*server, 16, 2, Purpose::kReceiveQueue);
  std::mutex mutex;
  std::vector<std::uint64_t> seen;
  auto queue = (*server)->create_queue([&](const Event &event) {
    std::lock_guard guard(mutex);
    seen.push_back(number_in(inbox, event));
    EXPECT_TRUE((*server)->release(event.buffer, event.element).ok());
  });
  ASSERT_TRUE((*queue)->bind(inbox.id()).ok());
  EXPECT_EQ((*queue)->wait(Deadline::now()).code(), Code::kInvalidArgument);
  send_numbered(50);
  for (const auto request : requests) EXPECT_EQ(finish(request).code, Code::kOk);
  const auto end = watchdog();
  for (std::size_t count = 0; count < 50 && !end.passed(); std::this_thread::yield()) {
    std::lock_guard guard(mutex);
    count = seen.size();
  }
  std::lock_guard guard(mutex);
  ASSERT_EQ(seen.size(), 50u);
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
}

TEST_P(Waiting, CallbackDoesNotRunOnceItsQueueIsGone_WhichMayGoWithinIt) {
  Buffer inbox(*server, 16, 8, Purpose::kReceiveQueue);
  auto alive = std::make_unique<std::atomic<int>>(0);
  std::unique_ptr<CompletionQueue> queue;
  auto made = (*server)->create_queue([&](const Event &) {
    auto *runs = alive.get();
    queue.reset();  // and this function with it
    ++*runs;
  });
  ASSERT_TRUE(made.ok());
  queue = std::move(*made);
  ASSERT_TRUE(queue->bind(inbox.id()).ok());
  send_numbered(4);
  for (const auto request : requests) EXPECT_EQ(finish(request).code, Code::kOk);
  (void)(*server)->create_queue();  // whoever takes the lock finds what the first message has set off
  const auto end = watchdog();
  while (*alive == 0 && !end.passed()) std::this_thread::yield();
  EXPECT_EQ(*alive, 1);
}

/// In a thread that waits, and so is one of those whose waits the closing ends.
TEST_P(Waiting, CallbackMayCloseItsContext) {
  Node other(subject());
  Buffer inbox(other, 16, 2, Purpose::kReceiveQueue), nothing(other, 16, 1, Purpose::kReceiveDestination);
  auto queue = other->create_queue([&](const Event &) { other->close(); });
  ASSERT_TRUE((*queue)->bind(inbox.id()).ok());
  Code ended = Code::kOk;
  std::thread waiter([&] { ended = other->wait(nothing.id(), Purpose::kNone, watchdog()).code(); });
  auto connected = (*client)->connect(other->url(), watchdog());
  ASSERT_TRUE(connected.ok()) << connected.error().to_string();
  Buffer message(*client, 16, 1, Purpose::kSendSource);
  ASSERT_TRUE((*client)->send((*connected)->process, message.id(), nullptr).ok());
  ASSERT_TRUE((*client)->wait(message.id(), Purpose::kNone, watchdog()).ok());
  waiter.join();
  EXPECT_EQ(ended, Code::kCancelled);
}

/// What a forked child has of its parent's queue is a copy, and the memory behind it is shared.
TEST_P(Waiting, QueueThatAForkedChildDropsGoesOnInItsParent) {
  if (subject().transport != "shm") GTEST_SKIP() << "nothing of it is shared";
  Buffer inbox(*server, 16, 2, Purpose::kReceiveQueue);
  auto queue = (*server)->create_queue();
  ASSERT_TRUE((*queue)->bind(inbox.id()).ok());
  auto descriptor = (*queue)->wait_fd();
  ASSERT_TRUE(descriptor.ok()) << descriptor.error().to_string();
  progress.reset();
  std::array<Event, 2> events;
  pollfd interest{*descriptor, POLLIN, 0};
  do
    while ((*queue)->poll(events) == events.size()) {}
  while (::poll(&interest, 1, 10) > 0);  // asleep from now on
  const pid_t child = ::fork();
  if (child == 0) {
    queue->reset();
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  Buffer message(*client, 16, 1, Purpose::kSendSource);
  ASSERT_TRUE((*client)->send(peer, message.id(), nullptr).ok());
  EXPECT_EQ(::poll(&interest, 1, 5000), 1) << "the sender took the sleeper for awake";
}

TEST_P(Waiting, AForkedChildGivesNoElementsBack) {
  Buffer inbox(*server, 16, 1, Purpose::kReceiveQueue);
  send_numbered(1);
  const auto got = receive(inbox.id());
  const pid_t child = ::fork();
  if (child == 0) ::_exit((*server)->release(inbox.id(), got.element).code() == Code::kNotFound ? 0 : 1);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE((*server)->release(inbox.id(), got.element).ok());
}

TEST_P(Waiting, DescriptorIsReadableWhenThereIsSomethingToDo_SoThatNoThreadNeedsToWait) {
  Buffer inbox(*server, 16, 2, Purpose::kReceiveQueue);
  auto queue = (*server)->create_queue();
  ASSERT_TRUE((*queue)->bind(inbox.id()).ok());
  auto descriptor = (*queue)->wait_fd();
  ASSERT_TRUE(descriptor.ok()) << descriptor.error().to_string();
  progress.reset();  // from here on only the event loop below makes the server's progress
  constexpr std::size_t kMessages = 20;
  std::atomic<bool> done{false};
  std::thread loop([&] {
    std::vector<Event> events(4);
    for (std::size_t taken = 0; taken < kMessages || !done;) {
      pollfd interest{*descriptor, POLLIN, 0};
      ASSERT_GE(::poll(&interest, 1, 100), 0);
      for (std::size_t count = events.size(); count == events.size();) {
        count = (*queue)->poll(events);
        for (std::size_t i = 0; i < count; ++i) {
          EXPECT_EQ(number_in(inbox, events[i]), taken++);
          EXPECT_TRUE((*server)->release(inbox.id(), events[i].element).ok());
        }
      }
    }
  });
  send_numbered(kMessages);
  for (const auto request : requests) EXPECT_EQ(finish(request).code, Code::kOk);
  done = true;
  loop.join();
}

INSTANTIATE_TEST_SUITE_P(Transports, Waiting, testing::ValuesIn(conformance::subjects_for_upper_floors()),
                         [](const auto &info) { return info.param.name; });

}  // namespace
}  // namespace nnti::engine_test

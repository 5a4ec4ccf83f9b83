// SPDX-License-Identifier: BSD-3-Clause
// Whose turn it is: orders and budgets, by a clock of the tests' own, and handlers that wait for theirs.
#include <gtest/gtest.h>

#include <nssi/bulk/director_queue.hpp>
#include <nssi/testing/testing.hpp>

#include <deque>
#include <mutex>
#include <random>

namespace nssi::testing {
namespace {

using nnti::Rights;
using std::chrono::milliseconds;
using std::chrono::seconds;

// --- orders and budgets -----------------------------------------------------------------------------------------------

const Clock::time_point kStart{std::chrono::hours(1)};

Ask ask(std::uint64_t size_bytes, std::uint64_t caller = 1, Target target = {}, Clock::time_point since = kStart) {
  return {size_bytes, PeerId{caller}, target, since, 0};
}

/// The numbers, from 1, in the order in which their turn comes at `now` while nothing is released.
std::vector<std::uint64_t> turns(DirectorQueue &queue, Clock::time_point now = kStart) {
  std::vector<std::uint64_t> numbers;
  while (const auto number = queue.next(now)) numbers.push_back(*number);
  return numbers;
}

std::vector<std::uint64_t> turns(std::unique_ptr<Policy> policy, const std::vector<Ask> &asks) {
  DirectorQueue queue({.policy = std::move(policy)});
  for (const auto &each : asks) queue.add(each);
  return turns(queue);
}

using Numbers = std::vector<std::uint64_t>;

TEST(NssiDirectorQueue, OrdersAreWhatTheirNamesSay) {
  const std::vector<Ask> asks{ask(20), ask(10), ask(30), ask(10), ask(30)};
  EXPECT_EQ(turns(nullptr, asks), (Numbers{1, 2, 3, 4, 5}));
  EXPECT_EQ(turns(oldest_first(), asks), (Numbers{1, 2, 3, 4, 5}));
  EXPECT_EQ(turns(smallest_first(), asks), (Numbers{2, 4, 1, 3, 5}));
  EXPECT_EQ(turns(largest_first(), asks), (Numbers{3, 5, 1, 2, 4}));
}

TEST(NssiDirectorQueue, ByTarget_GoesUpFromTheLastOneAndBeginsAgain) {
  DirectorQueue queue({.memory_bytes = 1, .policy = by_target()});
  queue.add(ask(1, 1, {2, 500}));
  ASSERT_EQ(turns(queue), Numbers{1});
  for (const auto &target : {Target{2, 100}, {3, 7}, {2, 600}, {1, 900}, {2, 550}, {2, 500}})
    queue.add(ask(1, 1, target));
  Numbers order;
  for (int i = 0; i < 6; ++i) {
    queue.release(1);
    order.push_back(turns(queue).at(0));
  }
  EXPECT_EQ(order, (Numbers{7, 6, 4, 3, 5, 2}));
}

TEST(NssiDirectorQueue, CallersInTurn_ShareAlikeWhateverTheyAskFor) {
  std::vector<Ask> asks;
  for (int i = 0; i < 6; ++i) asks.push_back(ask(100, 1));
  asks.push_back(ask(100, 2));
  asks.push_back(ask(100, 2));
  EXPECT_EQ(turns(callers_in_turn(), asks), (Numbers{1, 7, 2, 8, 3, 4, 5, 6}));
  asks = {ask(300, 1), ask(300, 1), ask(100, 2), ask(100, 2), ask(100, 2), ask(100, 2)};
  EXPECT_EQ(turns(callers_in_turn(), asks), (Numbers{1, 3, 4, 5, 2, 6})) << "by bytes";
}

TEST(NssiDirectorQueue, ACallerThatWasAway_HasSavedNothing) {
  DirectorQueue queue({.policy = callers_in_turn()});
  for (int i = 0; i < 10; ++i) queue.add(ask(100, 1));
  EXPECT_EQ(turns(queue).size(), 10u);
  for (int i = 0; i < 3; ++i) queue.add(ask(100, 2));
  for (int i = 0; i < 3; ++i) queue.add(ask(100, 1));
  EXPECT_EQ(turns(queue), (Numbers{11, 12, 14, 13, 15, 16}));
}

TEST(NssiDirectorQueue, WhoHasWaitedTooLong_GoesFirst) {
  DirectorQueue queue({.longest_wait = milliseconds(100), .policy = smallest_first()});
  queue.add(ask(300));
  queue.add(ask(200));
  queue.add(ask(100, 1, {}, kStart + milliseconds(50)));
  EXPECT_EQ(queue.next(kStart + milliseconds(99)), 3u);
  EXPECT_EQ(turns(queue, kStart + milliseconds(100)), (Numbers{1, 2}));
}

TEST(NssiDirectorQueue, WhoHasWaitedTooLong_IsLetThroughThoughNothingIsReleased) {
  DirectorQueue queue({.memory_bytes = 100, .longest_wait = milliseconds(100), .policy = largest_first()});
  queue.add(ask(60));
  ASSERT_EQ(turns(queue), Numbers{1});
  queue.add(ask(10));
  queue.add(ask(50));
  EXPECT_EQ(turns(queue), Numbers{}) << "the larger one is first, and has no room";
  ASSERT_EQ(queue.next_time().when(), kStart + milliseconds(100));
  EXPECT_EQ(turns(queue, queue.next_time().when()), Numbers{2});
  EXPECT_TRUE(queue.next_time().is_never());
}

TEST(NssiDirectorQueue, MemoryThatIsNotThere_IsWaitedFor_AndNobodyIsLetPast) {
  DirectorQueue queue({.memory_bytes = 100});
  for (std::uint64_t size : {60, 60, 30}) queue.add(ask(size));
  EXPECT_EQ(turns(queue), Numbers{1});
  EXPECT_TRUE(queue.next_time().is_never());
  queue.release(60);
  EXPECT_EQ(turns(queue), (Numbers{2, 3}));
  EXPECT_EQ(queue.used_bytes(), 90u);
}

TEST(NssiDirectorQueue, WhatIsLargerThanTheMemory_GoesAlone) {
  DirectorQueue queue({.memory_bytes = 100});
  for (std::uint64_t size : {10, 500, 10}) queue.add(ask(size));
  EXPECT_EQ(turns(queue), Numbers{1});
  queue.release(10);
  EXPECT_EQ(turns(queue), Numbers{2});
  queue.release(500);
  EXPECT_EQ(turns(queue), Numbers{3});
}

TEST(NssiDirectorQueue, OneThatGivesUp_IsNotWaitedForAnyMore) {
  DirectorQueue queue({.memory_bytes = 100});
  for (std::uint64_t size : {60, 60, 40}) queue.add(ask(size));
  EXPECT_EQ(turns(queue), Numbers{1});
  queue.remove(2);
  EXPECT_EQ(turns(queue), Numbers{3});
}

TEST(NssiDirectorQueue, Bandwidth_IsABurstAndThenARate) {
  DirectorQueue queue({.bytes_per_second = 1000, .burst_bytes = 100});
  for (int i = 0; i < 5; ++i) queue.add(ask(50));
  EXPECT_EQ(turns(queue), (Numbers{1, 2}));
  for (std::uint64_t number = 3; number <= 5; ++number) {
    const auto due = kStart + milliseconds(50 * (number - 2));
    EXPECT_EQ(queue.next_time().when(), due);
    EXPECT_EQ(turns(queue, due - std::chrono::nanoseconds(1)), Numbers{});
    EXPECT_EQ(turns(queue, due), Numbers{number});
  }
}

TEST(NssiDirectorQueue, ALongSilence_SavesABurstAndNoMore) {
  DirectorQueue queue({.bytes_per_second = 1000, .burst_bytes = 100});
  const auto later = kStart + std::chrono::hours(10);
  for (int i = 0; i < 5; ++i) queue.add(ask(50, 1, {}, later));
  EXPECT_EQ(turns(queue, later).size(), 2u);
}

TEST(NssiDirectorQueue, WhatIsLargerThanTheBurst_GoesAtAFullOne_AndIsPaidForAfterwards) {
  DirectorQueue queue({.bytes_per_second = 1000, .burst_bytes = 100});
  for (std::uint64_t size : {10, 500, 1}) queue.add(ask(size));
  EXPECT_EQ(turns(queue), Numbers{1});
  EXPECT_EQ(queue.next_time().when(), kStart + milliseconds(10));
  EXPECT_EQ(turns(queue, kStart + milliseconds(10)), Numbers{2});
  EXPECT_EQ(queue.next_time().when(), kStart + milliseconds(10 + 401));
  EXPECT_EQ(turns(queue, kStart + milliseconds(10 + 401)), Numbers{3});
}

TEST(NssiDirectorQueue, SizesBeyondAllMeasureAreOnlyLate) {
  constexpr auto kMost = ~std::uint64_t{0};
  DirectorQueue queue({.memory_bytes = kMost, .bytes_per_second = 1, .burst_bytes = kMost});
  queue.add(ask(kMost));
  EXPECT_EQ(turns(queue), Numbers{1});
  queue.add(ask(kMost));
  queue.release(kMost);
  EXPECT_EQ(turns(queue), Numbers{});
  EXPECT_GT(queue.next_time().when(), kStart);
}

/// A user's own: odd sizes first.
class OddFirst final : public Policy {
 public:
  explicit OddFirst(std::uint64_t &last) : last_(last) {}
  bool before(const Ask &a, const Ask &b) const override { return a.size_bytes % 2 > b.size_bytes % 2; }
  void let_through(const Ask &ask) override { last_ = ask.size_bytes; }

 private:
  std::uint64_t &last_;
};

TEST(NssiDirectorQueue, AnOrderOfOnesOwn) {
  std::uint64_t last = 0;
  EXPECT_EQ(turns(std::make_unique<OddFirst>(last), {ask(2), ask(5), ask(4), ask(7)}), (Numbers{2, 4, 1, 3}));
  EXPECT_EQ(last, 4u);
}

/// Whatever the order, under any load: what is in use and what has flowed stay within the budgets, and nobody waits for
/// much longer than the bound.
class NssiDirectorLoad : public ::testing::TestWithParam<int> {
 protected:
  static std::unique_ptr<Policy> policy() {
    switch (GetParam()) {
      case 0: return oldest_first();
      case 1: return smallest_first();
      case 2: return largest_first();
      case 3: return by_target();
      default: return callers_in_turn();
    }
  }
};

TEST_P(NssiDirectorLoad, BudgetsHoldAndNobodyStarves) {
  constexpr std::uint64_t kMemory = 1000, kRate = 100'000, kBurst = 500, kLargest = 800;
  constexpr milliseconds kLongestWait{100};
  DirectorQueue queue({.memory_bytes = kMemory,
                       .bytes_per_second = kRate,
                       .burst_bytes = kBurst,
                       .longest_wait = kLongestWait,
                       .policy = policy()});
  std::mt19937_64 random(1);
  std::map<std::uint64_t, Ask> waiting;
  std::deque<std::uint64_t> in_use;
  std::uint64_t flowed = 0, served = 0;
  for (auto now = kStart; now < kStart + seconds(10); now += milliseconds(1)) {
    while (waiting.size() < 20) {
      const auto one = ask(1 + random() % kLargest, random() % 3, {random() % 2, random() % 1000}, now);
      waiting.emplace(queue.add(one), one);
    }
    if (!in_use.empty() && random() % 4 != 0) {
      queue.release(in_use.front());
      in_use.pop_front();
    }
    while (const auto number = queue.next(now)) {
      const auto one = waiting.extract(*number).mapped();
      in_use.push_back(one.size_bytes);
      flowed += one.size_bytes;
      ++served;
      ASSERT_LE(now - one.since, kLongestWait + 20 * milliseconds(20));
    }
    ASSERT_LE(queue.used_bytes(), kMemory);
    const auto elapsed = static_cast<std::uint64_t>(std::chrono::duration_cast<milliseconds>(now - kStart).count());
    ASSERT_LE(flowed, kBurst + kLargest + elapsed * kRate / 1000);
  }
  EXPECT_GT(served, 1000u);
}

INSTANTIATE_TEST_SUITE_P(InEveryOrder, NssiDirectorLoad, ::testing::Range(0, 5));

// --- handlers ---------------------------------------------------------------------------------------------------------

enum DirectedOp : OpCode { kFetch = 100, kFetchInPool, kFetchShort, kFetchUntil, kSend, kHold, kHoldInPool };
constexpr std::size_t kDataBytes = 10'000;

/// Handlers that ask a director. Those of kHold keep what they were granted until they are told.
class DirectedService {
 public:
  DirectedService(RuntimeOptions options, DirectorOptions directing) {
    options.pools = {{"data", 2}};
    server = std::make_unique<ServiceThread>(std::move(options), [&](Runtime &runtime) {
      director = std::make_unique<Director>(runtime, std::move(directing));
      gate = std::make_unique<Event>(runtime);
      for (auto op : {kFetch, kFetchInPool, kFetchShort, kFetchUntil})
        add(runtime, op, [this](Request &r) { fetch(r); });
      add(runtime, kSend, [this](Request &r) {
        const auto status = director->push(r, pattern(r.data_bytes()), 0);
        (void)(status.ok() ? r.reply() : r.reply_error(status.error()));
      });
      for (auto op : {kHold, kHoldInPool}) add(runtime, op, [this](Request &r) { hold(r); });
    });
  }
  ~DirectedService() { server.reset(); }  // it ends the handlers, which use all of the rest
  void open_gate() { gate->set(); }
  /// The offsets that were asked for, in the order in which their turn came.
  std::vector<std::uint64_t> order() const {
    const std::lock_guard lock(mutex_);
    return order_;
  }

  std::unique_ptr<Director> director;
  std::unique_ptr<Event> gate;
  std::unique_ptr<ServiceThread> server;
  std::atomic<std::uint64_t> most_used{0};
  std::atomic<int> holding{0};

 private:
  void add(Runtime &runtime, OpCode op, Handler handler) {
    const auto kind = op == kFetchShort ? HandlerKind::kShort : HandlerKind::kFiber;
    Operation operation{kInterface, 0, op, "directed" + std::to_string(op), kind, std::move(handler)};
    if (op == kFetchInPool || op == kHoldInPool) operation.pool = "data";
    (void)runtime.add_operation(std::move(operation));
  }
  void fetch(Request &request) {
    const auto offset = xdr::decode<Pattern>(request.args())->size_bytes;
    const auto deadline = request.op() == kFetchUntil ? Deadline::in(milliseconds(20)) : Deadline::never();
    const auto pulled = director->pull(request, 0, request.data_bytes(), {1, offset}, deadline);
    if (!pulled.ok()) return (void)request.reply_error(pulled.error());
    note(offset);
    (void)request.reply(xdr::encode(std::ranges::equal(pulled->bytes(), pattern(request.data_bytes()))));
  }
  void note(std::uint64_t offset) {
    const std::lock_guard lock(mutex_);
    order_.push_back(offset);
    most_used = std::max(most_used.load(), director->used_bytes());
  }
  void hold(Request &request) {
    auto grant = director->admit(request, request.data_bytes());
    if (!grant.ok()) return (void)request.reply_error(grant.error());
    ++holding;
    (void)gate->wait(request.deadline());
    grant->release();
    (void)request.reply();
  }

  mutable std::mutex mutex_;
  std::vector<std::uint64_t> order_;
};

class NssiDirector : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!available(GetParam())) GTEST_SKIP() << "this machine has no transport " << GetParam();
  }
  void start(DirectorOptions directing, std::size_t max_fibers = 1024) {
    auto options = options_for(GetParam(), true);
    options.max_fibers = max_fibers;
    service_ = std::make_unique<DirectedService>(std::move(options), std::move(directing));
    client_ = open_runtime(options_for(GetParam(), false));
    peer_ = *client_->connect(service_->server->runtime->url(), Deadline::in(seconds(20)));
    buffer_ = *client_->allocate(kDataBytes, Rights::kReadWrite);
    std::ranges::copy(pattern(kDataBytes), buffer_.bytes().begin());
  }
  void TearDown() override {
    buffer_.reset();
    client_.reset();
    service_.reset();
  }
  Call call(OpCode op, std::uint64_t offset = 0, std::uint64_t size_bytes = kDataBytes) {
    CallOptions options;
    options.parts = {{&buffer_, 0, size_bytes}};
    return client_->call(at(peer_), op, xdr::encode(Pattern{offset}), options);
  }
  bool eventually_served(const std::function<bool()> &state, Call &call) {
    return eventually([&] {
      (void)call.test();
      return state();
    });
  }
  /// Somebody has taken all memory, and goes on having it until the gate is opened.
  Call hold(OpCode op = kHold) {
    auto holding = call(op);
    EXPECT_TRUE(eventually_served([&] { return service_->holding == 1; }, holding));
    return holding;
  }
  /// Calls that wait for their turn, having come in that order.
  std::vector<Call> wait_in_order(const std::vector<std::pair<std::uint64_t, std::uint64_t>> &offsets_and_sizes) {
    std::vector<Call> calls;
    for (const auto &[offset, size_bytes] : offsets_and_sizes) {
      calls.push_back(call(calls.size() % 2 == 0 ? kFetch : kFetchInPool, offset, size_bytes));
      EXPECT_TRUE(eventually_served([&] { return director().waiting() == calls.size(); }, calls.back()));
    }
    return calls;
  }
  static void expect_right(Call &call) {
    const auto status = call.wait();
    ASSERT_TRUE(status.ok()) << status.error().to_string();
    EXPECT_TRUE(*xdr::decode<bool>(call.result()));
  }
  std::vector<std::uint64_t> order_of(std::unique_ptr<Policy> policy) {
    start({.memory_bytes = 1, .longest_wait = std::chrono::hours(1), .policy = std::move(policy)});
    auto holding = hold();
    auto calls = wait_in_order({{5, 300}, {1, 100}, {4, 200}, {2, 500}, {3, 400}});
    service_->open_gate();
    for (auto &each : calls) expect_right(each);
    EXPECT_TRUE(holding.wait().ok());
    return service_->order();
  }
  Director &director() { return *service_->director; }

  std::unique_ptr<DirectedService> service_;
  std::unique_ptr<Runtime> client_;
  PeerId peer_;
  nnti::RegisteredBuffer buffer_;
};

TEST_P(NssiDirector, OldestFirst) { EXPECT_EQ(order_of(oldest_first()), (Numbers{5, 1, 4, 2, 3})); }
TEST_P(NssiDirector, SmallestFirst) { EXPECT_EQ(order_of(smallest_first()), (Numbers{1, 4, 5, 3, 2})); }
TEST_P(NssiDirector, ByTarget) { EXPECT_EQ(order_of(by_target()), (Numbers{1, 2, 3, 4, 5})); }

TEST_P(NssiDirector, UnderLoad_TheMemoryBudgetHoldsAndTheDataAreRight) {
  constexpr std::uint64_t kMemory = 3 * kDataBytes;
  start({.memory_bytes = kMemory});
  std::vector<Call> calls;
  for (std::uint64_t i = 0; i < 200; ++i)
    calls.push_back(call(i % 2 == 0 ? kFetch : kFetchInPool, i, 1 + i * 7919 % kDataBytes));
  for (auto &each : calls) expect_right(each);
  EXPECT_LE(service_->most_used, kMemory);
  EXPECT_GT(service_->most_used, 0u);
  EXPECT_TRUE(eventually([&] { return director().used_bytes() == 0; }));
}

TEST_P(NssiDirector, TheBandwidthBudgetHolds) {
  constexpr std::uint64_t kRate = 1'000'000;
  start({.bytes_per_second = kRate, .burst_bytes = kDataBytes});
  const auto before = Clock::now();
  std::vector<Call> calls;
  for (std::uint64_t i = 0; i < 20; ++i) calls.push_back(call(i % 2 == 0 ? kFetch : kFetchInPool, i));
  for (auto &each : calls) expect_right(each);
  EXPECT_GE(Clock::now() - before, milliseconds(19 * kDataBytes * 1000 / kRate));
}

TEST_P(NssiDirector, WhereAllFibersWaitForBandwidth_TheyGoOn) {
  start({.bytes_per_second = 1'000'000, .burst_bytes = 1}, 2);
  std::vector<Call> calls;
  for (std::uint64_t i = 0; i < 10; ++i) calls.push_back(call(i % 2 == 0 ? kFetch : kFetchInPool, i));
  for (auto &each : calls) expect_right(each);
}

TEST_P(NssiDirector, OneWhoseDeadlinePasses_GoesWithNothing_AndThoseBehindItGoOn) {
  for (auto op : {kHold, kHoldInPool}) {
    TearDown();
    start({.memory_bytes = kDataBytes + 100});
    auto holding = hold(op);
    auto late = call(kFetchUntil, 1);
    auto behind = call(kFetch, 2, 100);
    EXPECT_EQ(late.wait().code(), Code::kTimedOut);
    expect_right(behind);
    EXPECT_TRUE(eventually_served([&] { return director().used_bytes() == kDataBytes; }, holding));
    service_->open_gate();
    EXPECT_TRUE(holding.wait().ok());
    EXPECT_EQ(service_->order(), Numbers{2});
  }
}

TEST_P(NssiDirector, ACallThatIsDroppedWhileItWaits_LeavesTheQueue) {
  start({.memory_bytes = 1, .longest_wait = std::chrono::hours(1)});
  auto holding = hold();
  for (auto op : {kFetch, kFetchInPool}) {
    {
      auto dropped = call(op, 1, 100);
      ASSERT_TRUE(eventually_served([&] { return director().waiting() == 1; }, dropped));
    }
    EXPECT_TRUE(eventually([&] { return director().waiting() == 0; }));
  }
  service_->open_gate();
  EXPECT_TRUE(holding.wait().ok());
  EXPECT_EQ(service_->order(), Numbers{});
}

TEST_P(NssiDirector, AShortHandlerGoesAtOnceOrNotAtAll) {
  start({.memory_bytes = kDataBytes});
  auto at_once = call(kFetchShort);
  expect_right(at_once);
  auto holding = hold();
  EXPECT_EQ(call(kFetchShort).wait().code(), Code::kInvalidArgument);
  EXPECT_EQ(director().waiting(), 0u);
  service_->open_gate();
  EXPECT_TRUE(holding.wait().ok());
}

TEST_P(NssiDirector, WhatIsPushedGoesByItsTurn) {
  start({.memory_bytes = kDataBytes});
  auto holding = hold();
  std::ranges::fill(buffer_.bytes(), std::byte{0});
  auto sending = call(kSend);
  ASSERT_TRUE(eventually_served([&] { return director().waiting() == 1; }, sending));
  EXPECT_TRUE(std::ranges::all_of(buffer_.bytes(), [](std::byte b) { return b == std::byte{0}; }));
  service_->open_gate();
  EXPECT_TRUE(sending.wait().ok() && holding.wait().ok());
  EXPECT_TRUE(std::ranges::equal(buffer_.bytes(), pattern(kDataBytes)));
}

TEST_P(NssiDirector, ARuntimeThatEnds_EndsThoseThatWait) {
  start({.memory_bytes = 1, .bytes_per_second = 1, .burst_bytes = 1});
  auto holding = hold();
  auto calls = wait_in_order({{1, 100}, {2, 100}, {3, 100}});
  service_->server.reset();
  EXPECT_EQ(director().waiting(), 0u);
  for (auto &each : calls) EXPECT_FALSE(each.wait().ok());
  EXPECT_FALSE(holding.wait().ok());
}

TEST_P(NssiDirector, AGrantMovesAndIsGivenBackOnce) {
  start({.memory_bytes = 2 * kDataBytes});
  auto holding = hold();
  EXPECT_EQ(director().used_bytes(), kDataBytes);
  auto fetching = call(kFetch);
  expect_right(fetching);
  service_->open_gate();
  EXPECT_TRUE(holding.wait().ok());
  EXPECT_TRUE(eventually([&] { return director().used_bytes() == 0; }));
  Grant none;
  none.release();
  EXPECT_EQ(none.size_bytes(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Over, NssiDirector, ::testing::Values("inproc", "shm", "ofi"),
                         [](const auto &info) { return info.param; });

}  // namespace
}  // namespace nssi::testing

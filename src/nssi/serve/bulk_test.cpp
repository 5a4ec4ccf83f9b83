// SPDX-License-Identifier: BSD-3-Clause
// Bulk handlers, which wait for a quiet moment, and data that are read where their caller put them.
#include <gtest/gtest.h>

#include <nssi/testing/testing.hpp>

#include <mutex>
#include <numeric>

namespace nssi::testing {
namespace {

using nessie::Clock;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

RuntimeOptions holding(const std::string &transport, std::chrono::microseconds quiet,
                       std::chrono::microseconds longest_hold) {
  auto options = options_for(transport, true);
  options.bulk_quiet = quiet;
  options.bulk_longest_hold = longest_hold;
  return options;
}

/// The first `count` numbers.
std::vector<int> counting(int count) {
  std::vector<int> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

/// Notes the numbers of its bulk requests as they begin. Its progress can be stopped.
class BulkService {
 public:
  explicit BulkService(RuntimeOptions options) {
    runtime = open_runtime(std::move(options));
    gate_ = std::make_unique<Event>(*runtime);
    add(kLater, HandlerKind::kBulk, [this](Request &r) { note(r), (void)r.reply(); });
    add(kNow, HandlerKind::kBulkNow, [this](Request &r) { note(r), (void)r.reply(); });
    add(kLook, HandlerKind::kBulk, [this](Request &r) { look(r); });
    add(kQuick, HandlerKind::kFiber, [this](Request &r) { last_quick_ = Clock::now(), (void)r.reply(); });
    add(kHasten, HandlerKind::kShort, [this](Request &r) { runtime->hasten_bulk(), (void)r.reply(); });
    add(kWaitForGate, HandlerKind::kFiber, [this](Request &r) { (void)gate_->wait(r.deadline()), (void)r.reply(); });
    add(kOpenGate, HandlerKind::kShort, [this](Request &r) { gate_->set(), (void)r.reply(); });
    runtime->on_peer_lost([this](PeerId, const Error &) { ++lost; });
    go_on();
  }
  ~BulkService() {
    pause();
    runtime.reset();
  }
  void go_on() {
    thread_ = std::thread([this] { runtime->run(); });
  }
  void pause() {
    if (!thread_.joinable()) return;
    runtime->stop();
    thread_.join();
  }

  std::vector<int> begun() const {
    const std::lock_guard lock(mutex_);
    return begun_;
  }
  Clock::time_point first_begun() const {
    const std::lock_guard lock(mutex_);
    return first_begun_;
  }
  /// Between the last quick request before the first bulk one, and that.
  Clock::duration silence() const {
    const std::lock_guard lock(mutex_);
    return silence_;
  }

  std::unique_ptr<Runtime> runtime;
  std::atomic<int> lost{0}, seen_in_place{0};

 private:
  void add(OpCode op, HandlerKind kind, Handler handler) {
    (void)runtime->add_operation({kInterface, 0, op, "test" + std::to_string(op), kind, std::move(handler)});
  }
  void note(Request &request) {
    const std::lock_guard lock(mutex_);
    if (begun_.empty()) first_begun_ = Clock::now(), silence_ = first_begun_ - last_quick_;
    const auto number = xdr::decode<Pattern>(request.args());
    begun_.push_back(number.ok() ? static_cast<int>(number->size_bytes) : -1);
  }
  /// Answers whether the data are in place; they must be right.
  void look(Request &request) {
    const auto expected = pattern(request.data_bytes());
    const auto *view = request.view_data();
    if (view != nullptr && std::ranges::equal(view->bytes(), expected)) ++seen_in_place;
    if (view != nullptr) view->release_pages();
    (void)request.reply(xdr::encode(view != nullptr && std::ranges::equal(view->bytes(), expected)));
    note(request);
  }

  mutable std::mutex mutex_;
  std::vector<int> begun_;
  Clock::time_point last_quick_, first_begun_;
  Clock::duration silence_{};
  std::unique_ptr<Event> gate_;
  std::thread thread_;
};

class NssiBulk : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!available(GetParam())) GTEST_SKIP() << "this machine has no transport " << GetParam();
  }
  void start(RuntimeOptions options) {
    service_ = std::make_unique<BulkService>(std::move(options));
    client_ = connect(peer_);
    ASSERT_NE(client_, nullptr);
  }
  void start(std::chrono::microseconds quiet, std::chrono::microseconds longest_hold) {
    start(holding(GetParam(), quiet, longest_hold));
  }
  std::unique_ptr<Runtime> connect(PeerId &peer) {
    auto client = Runtime::open(options_for(GetParam(), false));
    if (!client.ok()) return nullptr;
    auto connected = (*client)->connect(service_->runtime->url(), Deadline::in(seconds(20)));
    EXPECT_TRUE(connected.ok()) << connected.error().to_string();
    if (!connected.ok()) return nullptr;
    peer = *connected;
    return *std::move(client);
  }
  Call call(OpCode op, int number = 0, const CallOptions &options = {}) {
    return client_->call(at(peer_), op, xdr::encode(Pattern{static_cast<std::uint64_t>(number)}), options);
  }
  std::vector<Call> call_later(int count) {
    std::vector<Call> calls;
    for (int i = 0; i < count; ++i) calls.push_back(call(kLater, i));
    return calls;
  }
  static bool all_end_well(std::vector<Call> &calls) {
    return std::ranges::all_of(calls, [](auto &c) { return c.wait(Deadline::in(seconds(20))).ok(); });
  }
  bool is_done(OpCode op, int number = 0) { return call(op, number).wait(Deadline::in(seconds(20))).ok(); }
  /// What a service that looks at the data answers.
  bool is_seen_in_place(const nnti::RegisteredBuffer *data, std::size_t args_bytes = 8) {
    CallOptions options;
    options.data = data;
    auto looking = client_->call(at(peer_), kLook, Bytes(args_bytes), options);
    EXPECT_TRUE(looking.wait(Deadline::in(seconds(20))).ok());
    auto answer = xdr::decode<bool>(looking.result());
    return answer.ok() && *answer;
  }

  std::unique_ptr<BulkService> service_;
  std::unique_ptr<Runtime> client_;
  PeerId peer_;
};

TEST_P(NssiBulk, HandlersAreHeldBackWhileRequestsCome) {
  start(hours(1), hours(1));
  auto calls = call_later(10);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(is_done(kQuick));
  EXPECT_TRUE(service_->begun().empty());
  ASSERT_TRUE(is_done(kHasten));
  ASSERT_TRUE(all_end_well(calls));
  EXPECT_EQ(service_->begun(), counting(10));
}

TEST_P(NssiBulk, HandlersBeginInOrderOfArrivalWhenItHasBeenQuiet) {
  constexpr auto kQuiet = milliseconds(20);
  start(kQuiet, hours(1));
  auto calls = call_later(10);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(is_done(kQuick));
  ASSERT_TRUE(all_end_well(calls));
  EXPECT_EQ(service_->begun(), counting(10));
  EXPECT_GE(service_->silence(), kQuiet);
}

TEST_P(NssiBulk, HandlersBeginAfterTheLongestHoldAlthoughRequestsGoOn) {
  constexpr auto kLongestHold = milliseconds(30);
  start(hours(1), kLongestHold);
  const auto before = Clock::now();
  auto held = call(kLater);
  ASSERT_TRUE(eventually([&] { return is_done(kQuick) && !service_->begun().empty(); }));
  EXPECT_TRUE(held.wait(Deadline::in(seconds(20))).ok());
  EXPECT_GE(service_->first_begun() - before, kLongestHold);
}

TEST_P(NssiBulk, HandlersBeginWithoutFurtherRequestsWhenTheLongestHoldIsOver) {
  start(hours(1), milliseconds(30));
  auto calls = call_later(10);
  ASSERT_TRUE(all_end_well(calls));
  EXPECT_EQ(service_->begun(), counting(10));
}

TEST_P(NssiBulk, ACallerThatWaitsEndsTheHoldingInOrderOfArrival) {
  start(hours(1), hours(1));
  auto calls = call_later(5);
  ASSERT_TRUE(is_done(kNow, 5));
  EXPECT_EQ(service_->begun(), counting(6));
  ASSERT_TRUE(all_end_well(calls));
}

TEST_P(NssiBulk, HoldingBeginsAnewAfterItWasEnded) {
  start(hours(1), hours(1));
  ASSERT_TRUE(is_done(kNow, 0));
  auto held = call(kLater, 1);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(is_done(kQuick));
  EXPECT_EQ(service_->begun(), counting(1));
  ASSERT_TRUE(is_done(kNow, 2));
  EXPECT_EQ(service_->begun(), counting(3));
  EXPECT_TRUE(held.wait(Deadline::in(seconds(20))).ok());
}

TEST_P(NssiBulk, HandlersThatFindNoFiberKeepTheirOrder) {
  auto options = holding(GetParam(), hours(1), hours(1));
  options.max_fibers = 2;
  start(std::move(options));
  std::vector<Call> blocked;
  for (int i = 0; i < 2; ++i) blocked.push_back(call(kWaitForGate));
  auto calls = call_later(10);
  ASSERT_TRUE(is_done(kHasten));
  EXPECT_TRUE(service_->begun().empty());
  ASSERT_TRUE(is_done(kOpenGate));
  ASSERT_TRUE(all_end_well(calls) && all_end_well(blocked));
  EXPECT_EQ(service_->begun(), counting(10));
}

TEST_P(NssiBulk, RequestsThatWereGivenUpAreNotServed) {
  start(hours(1), hours(1));
  CallOptions options;
  options.deadline = Deadline::in(milliseconds(20));
  EXPECT_EQ(call(kLater, 0, options).wait().code(), Code::kTimedOut);
  { auto dropped = call(kLater, 1); }
  ASSERT_TRUE(is_done(kNow, 2));
  EXPECT_EQ(service_->begun(), std::vector<int>{2});
}

TEST_P(NssiBulk, RequestsWithoutDataOfACallerThatIsGoneAreNotServed) {
  start(hours(1), hours(1));
  PeerId others_peer;
  auto other = connect(others_peer);
  ASSERT_NE(other, nullptr);
  std::vector<Call> calls;
  for (int i = 0; i < 3; ++i) calls.push_back(other->call(at(others_peer), kLater, xdr::encode(Pattern{100})));
  ASSERT_TRUE(other->call(at(others_peer), kQuick, {}).wait(Deadline::in(seconds(20))).ok());
  other->disconnect(others_peer);
  ASSERT_TRUE(eventually([&] {
    (void)calls[0].test();
    return service_->lost == 1;
  }));
  ASSERT_TRUE(is_done(kNow, 2));
  EXPECT_EQ(service_->begun(), std::vector<int>{2});
}

TEST_P(NssiBulk, ADestroyedServiceEndsWhatItHeldBack) {
  start(hours(1), hours(1));
  auto calls = call_later(10);
  ASSERT_TRUE(is_done(kQuick));
  service_.reset();
  for (auto &c : calls) EXPECT_FALSE(c.wait(Deadline::in(seconds(20))).ok());
}

TEST_P(NssiBulk, AllocatedDataAreSeenInPlaceWhereTheTransportMapsThem) {
  start(milliseconds(0), milliseconds(0));
  const bool maps = client_->can_view(peer_);
  EXPECT_TRUE(maps || GetParam() != "shm");
  for (std::size_t size : {1, 4096, 100'001, 4 << 20}) {
    auto buffer = client_->allocate(size, nnti::Rights::kReadWrite);
    ASSERT_TRUE(buffer.ok());
    std::ranges::copy(pattern(size), buffer->bytes().begin());
    const auto inlined = client_->max_inline_args(peer_);
    for (auto args_bytes : {std::size_t{8}, inlined, inlined + 1, std::size_t{100'000}})
      EXPECT_EQ(is_seen_in_place(&*buffer, args_bytes), maps) << size << " " << args_bytes;
    EXPECT_TRUE(std::ranges::equal(buffer->bytes(), pattern(size)));
  }
}

TEST_P(NssiBulk, OtherDataAreNotSeenInPlace) {
  start(milliseconds(0), milliseconds(0));
  auto memory = pattern(4096);
  auto buffer = client_->register_memory(memory, nnti::Rights::kReadWrite);
  auto write_only = client_->allocate(4096, nnti::Rights::kRemoteWrite);
  ASSERT_TRUE(buffer.ok() && write_only.ok());
  EXPECT_FALSE(is_seen_in_place(&*buffer));
  EXPECT_FALSE(is_seen_in_place(&*write_only));
  EXPECT_FALSE(is_seen_in_place(nullptr));
}

TEST_P(NssiBulk, RequestsAreUnsentWhileTheServicesInboxIsFull) {
  start(hours(1), hours(1));
  EXPECT_FALSE(client_->has_unsent(peer_));
  service_->pause();
  std::vector<Call> calls;
  while (calls.size() < 100'000 && !client_->has_unsent(peer_)) calls.push_back(call(kLater));
  EXPECT_TRUE(client_->has_unsent(peer_));
  service_->go_on();
  ASSERT_TRUE(eventually([&] {
    (void)calls[0].test();
    return !client_->has_unsent(peer_);
  }));
  ASSERT_TRUE(is_done(kHasten));
  EXPECT_TRUE(all_end_well(calls));
  EXPECT_EQ(service_->begun().size(), calls.size());
}

INSTANTIATE_TEST_SUITE_P(Over, NssiBulk, ::testing::Values("inproc", "shm", "ofi"),
                         [](const auto &info) { return info.param; });

// --- processes --------------------------------------------------------------------------------------------------------

class NssiBequest : public ::testing::Test {
 protected:
  static constexpr int kRequests = 8;
  void SetUp() override {
    if (!available("shm")) GTEST_SKIP() << "this machine has no transport shm";
  }
  void expect_all_served(const BulkService &service) {
    EXPECT_TRUE(eventually([&] { return service.begun().size() == kRequests; }));
    EXPECT_EQ(service.begun(), counting(kRequests));
    EXPECT_EQ(service.seen_in_place, kRequests);
  }
  static std::vector<std::string> command(const BulkService &service) {
    return {NSSI_TEST_PEER, "bequeath", "shm", service.runtime->url(), "300001", std::to_string(kRequests)};
  }
};

TEST_F(NssiBequest, RequestsOfACallerThatWasKilledBeforeTheServiceLookedAreServed) {
  BulkService service(options_for("shm", true));
  Process client(command(service));
  ASSERT_EQ(client.line(), "ready");
  service.pause();
  ::kill(client.pid(), SIGUSR1);
  ASSERT_EQ(client.wait_for_signal(), SIGKILL);
  service.go_on();
  expect_all_served(service);
  EXPECT_TRUE(eventually([&] { return service.lost == 1; }));
}

TEST_F(NssiBequest, RequestsThatAreHeldBackWhenTheirCallerIsKilledAreServed) {
  BulkService service(holding("shm", hours(1), hours(1)));
  Process client(command(service));
  ASSERT_EQ(client.line(), "ready");
  ::kill(client.pid(), SIGUSR1);
  ASSERT_EQ(client.wait_for_signal(), SIGKILL);
  ASSERT_TRUE(eventually([&] { return service.lost == 1; }));
  EXPECT_TRUE(service.begun().empty());
  service.runtime->post([&] { service.runtime->hasten_bulk(); });
  expect_all_served(service);
}

}  // namespace
}  // namespace nssi::testing

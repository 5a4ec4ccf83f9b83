// SPDX-License-Identifier: BSD-3-Clause
// Handlers in threads of their own: they may block and compute, and everything that a handler may do works there, too.
#include <gtest/gtest.h>

#include <sched.h>

#include <nssi/drive/pool.hpp>
#include <nssi/testing/testing.hpp>

#include <mutex>

namespace nssi::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

enum PoolOp : OpCode {
  kSleep = 100,
  kPullInPool,
  kPushInPool,
  kEchoInPool,
  kCallOn,
  kWait,
  kNote,
  kNoteThis,
  kNap,
  kPullOn,
  kEncodeBadly,
  kEncodeBadlyHere,
  kBlockForEver
};

/// A service whose operations run in a pool, "heavy"; and the tests' own beside it, on the driver's thread.
class PooledService {
 public:
  explicit PooledService(const std::string &transport, std::size_t threads = 1) {
    auto options = options_for(transport, true);
    options.pools = {{"heavy", threads}};
    thread = std::make_unique<ServiceThread>(std::move(options), [this](Runtime &runtime) { add_all(runtime); });
  }
  ~PooledService() {
    is_open = true;
    thread.reset();
  }
  std::vector<int> noted() {
    std::lock_guard lock(mutex_);
    return noted_;
  }

  std::atomic<bool> is_open{false};  ///< ends those who sleep
  std::atomic<int> asleep{0}, waiting{0};
  std::atomic<Code> pull_ended{Code::kOk};
  std::unique_ptr<Event> event;
  std::unique_ptr<ServiceThread> thread;

 private:
  void add_all(Runtime &runtime) {
    event = std::make_unique<Event>(runtime);
    add(runtime, kSleep, [this](Request &r) {
      ++asleep;
      while (!is_open) std::this_thread::sleep_for(milliseconds(1));  // blocks its thread
      --asleep;
      (void)r.reply();
    });
    add(runtime, kPullInPool, [](Request &r) {
      Bytes bytes(r.data_bytes());
      auto status = r.get_data(bytes);
      (void)(status.ok() ? r.reply(xdr::encode(bytes == pattern(bytes.size()))) : r.reply_error(status.error()));
    });
    add(runtime, kPushInPool, [](Request &r) {
      auto status = r.put_data(pattern(r.data_bytes()));
      (void)(status.ok() ? r.reply() : r.reply_error(status.error()));
    });
    add(runtime, kEchoInPool, [](Request &r) { (void)r.reply(r.args()); });
    add(runtime, kCallOn, [&runtime](Request &r) {
      auto call = runtime.call(at(r.caller()), kEcho, r.args());
      auto status = call.wait();
      (void)(status.ok() ? r.reply(call.view()) : r.reply_error(status.error()));
    });
    add(runtime, kWait, [this](Request &r) {
      ++waiting;
      auto status = event->wait(r.deadline());
      (void)(status.ok() ? r.reply() : r.reply_error(status.error()));
    });
    add(
        runtime, kNote, [this](Request &r) { note(0), (void)r.reply(); }, Priority::kLow);
    add(
        runtime, kNote + 100, [this](Request &r) { note(1), (void)r.reply(); }, Priority::kHigh);
    add(runtime, kNoteThis, [this](Request &r) { note(*xdr::decode<std::int32_t>(r.args())), (void)r.reply(); });
    add(runtime, kNap, [&runtime](Request &r) {
      runtime.sleep_until(Deadline::in(milliseconds(5)));
      (void)r.reply(xdr::encode(runtime.in_fiber()));
    });
    auto encode_badly = [](Request &r) {
      const auto size_bytes = xdr::decode<Pattern>(r.args())->size_bytes;
      const auto status = r.reply(size_bytes, [](std::span<std::byte>) { throw std::runtime_error("out of ink"); });
      EXPECT_EQ(status.code(), Code::kInternal);
    };
    add(runtime, kEncodeBadly, encode_badly);
    (void)runtime.add_operation(
        {kInterface, 0, kEncodeBadlyHere, "encode_badly", HandlerKind::kShort, std::move(encode_badly)});
    add(runtime, kPullOn, [this](Request &r) {
      Bytes bytes(r.data_bytes());
      for (++waiting;;)
        if (auto status = r.get_data(bytes); !status.ok()) return pull_ended.store(status.code());
    });
  }
  static void add(Runtime &runtime, OpCode op, Handler handler, Priority priority = Priority::kNormal) {
    Operation operation{kInterface, 0, op, "pooled" + std::to_string(op), HandlerKind::kFiber, std::move(handler)};
    operation.pool = "heavy";
    operation.priority = priority;
    auto status = runtime.add_operation(std::move(operation));
    EXPECT_TRUE(status.ok()) << status.error().to_string();
  }
  void note(int what) {
    std::lock_guard lock(mutex_);
    noted_.push_back(what);
  }
  std::mutex mutex_;
  std::vector<int> noted_;
};

class NssiPools : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!available(GetParam())) GTEST_SKIP() << "this machine has no transport " << GetParam();
  }
  void start(std::size_t threads = 1) {
    service_ = std::make_unique<PooledService>(GetParam(), threads);
    client_ = open_runtime(options_for(GetParam(), false));
    peer_ = *client_->connect(service_->thread->runtime->url(), Deadline::in(seconds(20)));
  }
  void TearDown() override { client_.reset(), service_.reset(); }
  Call call(OpCode op, const Bytes &args = {}, const nnti::RegisteredBuffer *data = nullptr) {
    CallOptions options;
    options.data = data;
    return client_->call(at(peer_), op, args, options);
  }
  /// Drives until the service shows it.
  bool shows(const std::atomic<int> &count, int value) {
    auto probe = call(kNoop);
    return eventually([&] { return (void)probe.test(), count == value; });
  }

  std::unique_ptr<PooledService> service_;
  std::unique_ptr<Runtime> client_;
  PeerId peer_;
};

TEST_P(NssiPools, AResultWhoseEncoderThrows_IsTheCallersError) {
  start();
  for (auto op : {kEncodeBadly, kEncodeBadlyHere})
    for (std::uint64_t size : {1, 100'000}) {
      const auto status = call(op, xdr::encode(Pattern{size})).wait();
      EXPECT_EQ(status.code(), Code::kInternal);
      EXPECT_NE(status.error().message.find("out of ink"), std::string::npos);
    }
  EXPECT_TRUE(call(kNoop).wait().ok());
}

TEST_P(NssiPools, AHandlerThatBlocksItsThread_HoldsUpNobodyElse) {
  start();
  auto sleeper = call(kSleep);
  ASSERT_TRUE(shows(service_->asleep, 1));
  for (auto op : {kNoop, kNoopShort}) EXPECT_TRUE(call(op).wait().ok());
  service_->is_open = true;
  EXPECT_TRUE(sleeper.wait().ok());
}

TEST_P(NssiPools, SeveralThreads_RunSeveralHandlersAtOnce) {
  start(3);
  std::vector<Call> sleepers;
  for (int i = 0; i < 3; ++i) sleepers.push_back(call(kSleep));
  EXPECT_TRUE(shows(service_->asleep, 3));
  service_->is_open = true;
  for (auto &sleeper : sleepers) EXPECT_TRUE(sleeper.wait().ok());
}

TEST_P(NssiPools, DataArgumentsAndResultsOfEverySize) {
  start(2);
  for (std::size_t size : {1u, 5000u, 3u << 20}) {
    auto buffer = client_->allocate(size, nnti::Rights::kReadWrite);
    ASSERT_TRUE(buffer.ok());
    std::ranges::copy(pattern(size), buffer->bytes().begin());
    auto pulled = call(kPullInPool, {}, &*buffer);
    ASSERT_TRUE(pulled.wait().ok());
    EXPECT_EQ(pulled.result(), xdr::encode(true));
    std::ranges::fill(buffer->bytes(), std::byte{0});
    EXPECT_TRUE(call(kPushInPool, {}, &*buffer).wait().ok());
    EXPECT_TRUE(std::ranges::equal(buffer->bytes(), pattern(size)));
    auto echo = call(kEchoInPool, pattern(size));
    ASSERT_TRUE(echo.wait().ok());
    EXPECT_EQ(echo.result(), pattern(size));
  }
}

TEST_P(NssiPools, ManyCallsInProgress_AllAreAnswered) {
  start(2);
  std::vector<Call> calls;
  for (int i = 0; i < 500; ++i) calls.push_back(call(kEchoInPool, xdr::encode(std::int32_t{i})));
  for (int i = 0; i < 500; ++i) {
    ASSERT_TRUE(calls[i].wait().ok());
    EXPECT_EQ(calls[i].result(), xdr::encode(std::int32_t{i}));
  }
}

/// Threads that are called for work, and find that another one has begun it, must be called again for their fibers.
TEST_P(NssiPools, TransfersOfManyHandlersThatShareThreads_AllEnd) {
  start(2);
  auto buffer = client_->allocate(10'000, nnti::Rights::kReadWrite);
  ASSERT_TRUE(buffer.ok());
  std::ranges::copy(pattern(10'000), buffer->bytes().begin());
  for (int round = 0; round < 10; ++round) {
    std::vector<Call> calls;
    for (int i = 0; i < 200; ++i) calls.push_back(call(i % 2 == 0 ? OpCode{kPullInPool} : OpCode{kPull}, {}, &*buffer));
    for (auto &each : calls) {
      const auto status = each.wait();
      ASSERT_TRUE(status.ok()) << status.error().to_string();
    }
  }
}

TEST_P(NssiPools, AHandlerMaySleepAndWaitForEvents_WhileItsThreadServesOthers) {
  start();
  auto waiter = call(kWait);
  ASSERT_TRUE(shows(service_->waiting, 1));
  auto nap = call(kNap);
  ASSERT_TRUE(nap.wait().ok());
  EXPECT_EQ(nap.result(), xdr::encode(true));
  service_->event->set();
  EXPECT_TRUE(waiter.wait().ok());
}

TEST_P(NssiPools, AHandlerMayCallItsCaller) {
  start();
  Service local(*client_);
  auto on = call(kCallOn, pattern(100));
  ASSERT_TRUE(on.wait().ok());
  EXPECT_EQ(on.result(), pattern(100));
}

TEST_P(NssiPools, WhatWaitsForAThread_BeginsByPriority) {
  start();
  auto sleeper = call(kSleep);
  ASSERT_TRUE(shows(service_->asleep, 1));
  std::vector<Call> calls;
  for (int i = 0; i < 4; ++i) calls.push_back(call(kNote));
  for (int i = 0; i < 4; ++i) calls.push_back(call(kNote + 100));
  EXPECT_TRUE(call(kNoop).wait().ok());
  service_->is_open = true;
  for (auto &each : calls) EXPECT_TRUE(each.wait().ok());
  EXPECT_EQ(service_->noted(), (std::vector{1, 1, 1, 1, 0, 0, 0, 0}));
}

TEST_P(NssiPools, WhoHasManyRequestsWaiting_DoesNotHoldUpWhoHasFew) {
  start();
  auto other = open_runtime(options_for(GetParam(), false));
  const auto peer = *other->connect(service_->thread->runtime->url(), Deadline::in(seconds(20)));
  auto sleeper = call(kSleep);
  ASSERT_TRUE(shows(service_->asleep, 1));
  std::vector<Call> many, few;
  for (int i = 0; i < 4; ++i) many.push_back(call(kNoteThis, xdr::encode(std::int32_t{4})));
  ASSERT_TRUE(call(kNoop).wait().ok());
  for (int i = 0; i < 2; ++i) few.push_back(other->call(at(peer), kNoteThis, xdr::encode(std::int32_t{2})));
  ASSERT_TRUE(other->call(at(peer), kNoop, {}).wait().ok());
  service_->is_open = true;
  for (auto *calls : {&few, &many})
    for (auto &each : *calls) EXPECT_TRUE(each.wait().ok());
  EXPECT_EQ(service_->noted(), (std::vector{4, 2, 4, 2, 4, 4}));
}

TEST_P(NssiPools, ARequestThatIsCancelledBeforeItsThreadIsFree_IsNotCarriedOut) {
  start();
  auto sleeper = call(kSleep);
  ASSERT_TRUE(shows(service_->asleep, 1));
  { auto dropped = call(kNote); }
  EXPECT_TRUE(call(kNoop).wait().ok());
  service_->is_open = true;
  EXPECT_TRUE(sleeper.wait().ok());
  EXPECT_TRUE(call(kNap).wait().ok());
  EXPECT_TRUE(service_->noted().empty());
}

TEST_P(NssiPools, WhatWaitsForAThreadPastItsDeadline_IsNotCarriedOut) {
  start();
  auto sleeper = call(kSleep);
  ASSERT_TRUE(shows(service_->asleep, 1));
  CallOptions options;
  options.deadline = Deadline::in(milliseconds(50));
  auto late = client_->call(at(peer_), kNote, {}, options);
  EXPECT_EQ(late.wait().code(), Code::kTimedOut);
  service_->is_open = true;
  EXPECT_TRUE(sleeper.wait().ok());
  EXPECT_TRUE(call(kNap).wait().ok());
  EXPECT_TRUE(service_->noted().empty());
}

TEST_P(NssiPools, AOneWayCallIsOverWhenItsThreadBegins_OrTellsThatItDidNot) {
  start();
  auto sleeper = call(kSleep);
  ASSERT_TRUE(shows(service_->asleep, 1));
  CallOptions options;
  options.one_way = true;
  options.deadline = Deadline::in(milliseconds(50));
  EXPECT_EQ(client_->call(at(peer_), kNote, {}, options).wait().code(), Code::kTimedOut);
  const Bytes large(1 << 20);
  options.deadline = Deadline::in(milliseconds(50));
  EXPECT_EQ(client_->call(at(peer_), kNote, large, options).wait().code(), Code::kTimedOut);
  options.deadline.reset();
  auto early = client_->call(at(peer_), kNote + 100, {}, options);
  auto long_one = client_->call(at(peer_), kNote + 100, large, options);
  EXPECT_TRUE(call(kNoop).wait().ok());
  EXPECT_FALSE(early.test() || long_one.test()) << "its handler has not begun";
  service_->is_open = true;
  EXPECT_TRUE(early.wait().ok());
  EXPECT_TRUE(long_one.wait().ok());
  EXPECT_TRUE(call(kNap).wait().ok());
  EXPECT_EQ(service_->noted(), (std::vector{1, 1}));
}

TEST_P(NssiPools, DestroyedWhileAHandlerBlocksItsThread_ItIsWaitedFor) {
  start();
  auto sleeper = call(kSleep);
  ASSERT_TRUE(shows(service_->asleep, 1));
  std::thread later([this] {
    std::this_thread::sleep_for(milliseconds(200));
    service_->is_open = true;
  });
  service_->thread->stop();
  service_->thread.reset();
  EXPECT_EQ(service_->asleep, 0);
  later.join();
  EXPECT_NE(sleeper.wait().code(), Code::kOk);
}

TEST_P(NssiPools, DestroyedWhileAHandlerBlocksForEver_LeavesItBehind) {
  auto options = options_for(GetParam(), true);
  options.endpoint.config.set("nssi.timeout", "200ms");
  options.pools = {{"heavy", 1}};
  auto blocked = std::make_shared<std::atomic<bool>>(false);  // outlives the test, as its thread does
  auto server = std::make_unique<ServiceThread>(std::move(options), [&](Runtime &runtime) {
    Operation operation{kInterface, 0, kBlockForEver, "blocks", HandlerKind::kFiber, [blocked](Request &) {
                          *blocked = true;
                          for (;;) std::this_thread::sleep_for(seconds(3600));
                        }};
    operation.pool = "heavy";
    ASSERT_TRUE(runtime.add_operation(std::move(operation)).ok());
  });
  auto client = open_runtime(options_for(GetParam(), false));
  auto peer = client->connect(server->runtime->url(), Deadline::in(seconds(20)));
  ASSERT_TRUE(peer.ok());
  auto call = client->call(at(*peer), kBlockForEver, Bytes());
  ASSERT_TRUE(eventually([&] { return blocked->load(); }));
  server.reset();
  EXPECT_EQ(call.wait().code(), Code::kPeerLost);
}

TEST_P(NssiPools, ACallerThatDiesDuringATransfer_EndsItsHandler) {
  start();
  auto buffer = client_->allocate(64 << 10, nnti::Rights::kReadWrite);
  ASSERT_TRUE(buffer.ok());
  auto forever = call(kPullOn, {}, &*buffer);
  ASSERT_TRUE(shows(service_->waiting, 1));
  client_->disconnect(peer_);
  EXPECT_NE(forever.wait().code(), Code::kOk);
  EXPECT_TRUE(eventually([&] { return service_->pull_ended != Code::kOk; }));
}

TEST_P(NssiPools, DestroyedWhileHandlersWait_TheyEnd) {
  start(2);
  auto waiter = call(kWait);
  ASSERT_TRUE(shows(service_->waiting, 1));
  service_->thread->stop();
  service_.reset();
  EXPECT_NE(waiter.wait().code(), Code::kOk);
}

INSTANTIATE_TEST_SUITE_P(Transports, NssiPools, ::testing::Values("inproc", "shm", "ofi"),
                         [](const auto &info) { return info.param; });

class NssiPoolSettings : public ::testing::Test {
 protected:
  Result<std::unique_ptr<Runtime>> open(const std::map<std::string, std::string> &settings) {
    auto options = options_for("inproc", true);
    for (auto &[key, value] : settings) options.endpoint.config.set(key, value);
    return Runtime::open(std::move(options));
  }
  static Operation operation(HandlerKind kind = HandlerKind::kFiber) {
    return {kInterface, 0, 1, "work", kind, [](Request &r) { (void)r.reply(); }};
  }
};

/// The cores that the calling thread may run on.
std::vector<int> own_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  return cores;
}

TEST(NssiPoolCores, HandlersRunOnThoseOfTheirPool) {
  const auto all = own_cores();
  if (all.size() < 2) GTEST_SKIP() << "there is only one core";
  for (const int core : {all.front(), all.back()}) {
    std::vector<int> seen;  // written before the result is sent
    auto options = options_for("inproc", true);
    options.endpoint.config.set("nssi.pools", "bound");
    options.endpoint.config.set("nssi.pool.bound.cores", std::to_string(core));
    ServiceThread server(std::move(options), [&](Runtime &runtime) {
      Operation operation{kInterface, 0, kSleep, "look", HandlerKind::kFiber, [&](Request &r) {
                            seen = own_cores();
                            (void)r.reply();
                          }};
      operation.pool = "bound";
      ASSERT_TRUE(runtime.add_operation(std::move(operation)).ok());
    });
    auto client = open_runtime(options_for("inproc", false));
    const auto peer = client->connect(server.runtime->url(), Deadline::in(seconds(20)));
    ASSERT_TRUE(peer.ok());
    ASSERT_TRUE(client->call(at(*peer), kSleep, Bytes()).wait().ok());
    EXPECT_EQ(seen, std::vector<int>{core});
  }
}

/// Requests that have come while the driver was busy.
TEST(NssiPriorities, WithoutAPool_TheMoreUrgentBeginsFirst) {
  std::atomic<bool> is_open{false}, is_stuck{false};
  std::vector<int> noted;
  ServiceThread server(options_for("inproc", true), [&](Runtime &runtime) {
    (void)runtime.add_operation({kInterface, 0, kSleep, "stick", HandlerKind::kShort, [&](Request &r) {
                                   is_stuck = true;
                                   while (!is_open) std::this_thread::yield();
                                   (void)r.reply();
                                 }});
    for (const auto &[op, priority] : {std::pair{kNote, Priority::kLow}, std::pair{kNoteThis, Priority::kHigh}}) {
      Operation operation{kInterface, 0, op, "note" + std::to_string(op), HandlerKind::kFiber, [&noted](Request &r) {
                            noted.push_back(static_cast<int>(r.op()));
                            (void)r.reply();
                          }};
      operation.priority = priority;
      (void)runtime.add_operation(std::move(operation));
    }
  });
  auto client = open_runtime(options_for("inproc", false));
  const auto peer = *client->connect(server.runtime->url(), Deadline::in(seconds(20)));
  std::vector<Call> calls;
  calls.push_back(client->call(at(peer), kSleep, Bytes()));
  ASSERT_TRUE(eventually([&] { return is_stuck.load(); }));
  for (int i = 0; i < 3; ++i) calls.push_back(client->call(at(peer), kNote, Bytes()));
  for (int i = 0; i < 3; ++i) calls.push_back(client->call(at(peer), kNoteThis, Bytes()));
  is_open = true;
  for (auto &call : calls) ASSERT_TRUE(call.wait().ok());
  EXPECT_EQ(noted, (std::vector<int>{kNoteThis, kNoteThis, kNoteThis, kNote, kNote, kNote}));
}

TEST_F(NssiPoolSettings, TheConfigurationNamesPoolsAndWhoRunsThere) {
  auto runtime = open({{"nssi.pools", "fast, slow"}, {"nssi.pool.slow.threads", "2"}, {"nssi.op.work.pool", "slow"}});
  ASSERT_TRUE(runtime.ok()) << runtime.error().to_string();
  EXPECT_TRUE((*runtime)->add_operation(operation()).ok());
}

TEST_F(NssiPoolSettings, APoolThatDoesNotExistIsNamedInTheError) {
  auto runtime = open({{"nssi.op.work.pool", "nowhere"}});
  ASSERT_TRUE(runtime.ok());
  auto status = (*runtime)->add_operation(operation());
  ASSERT_EQ(status.code(), Code::kNotFound);
  EXPECT_NE(status.error().message.find("nowhere"), std::string::npos);
}

TEST_F(NssiPoolSettings, OnlyFibersRunInPools) {
  auto runtime = open({{"nssi.pools", "slow"}, {"nssi.op.work.pool", "slow"}});
  ASSERT_TRUE(runtime.ok());
  for (auto kind : {HandlerKind::kShort, HandlerKind::kBulk})
    EXPECT_EQ((*runtime)->add_operation(operation(kind)).code(), Code::kInvalidArgument);
}

TEST_F(NssiPoolSettings, BadOnesAreRefused) {
  for (const std::string cores : {"x", "1-", "3-1", "0,", "99999", "-1", "0 1", "0,1000"})
    EXPECT_EQ(open({{"nssi.pools", "p"}, {"nssi.pool.p.cores", cores}}).code(), Code::kInvalidArgument) << cores;
  EXPECT_EQ(open({{"nssi.pools", "p"}, {"nssi.pool.p.threads", "many"}}).code(), Code::kInvalidArgument);
  EXPECT_EQ(open({{"nssi.pools", "p"}, {"nssi.pool.p.threads", "0"}}).code(), Code::kInvalidArgument);
  auto runtime = open({{"nssi.op.work.priority", "urgent"}});
  ASSERT_TRUE(runtime.ok());
  EXPECT_EQ((*runtime)->add_operation(operation()).code(), Code::kInvalidArgument);
}

TEST(NssiCores, AListIsRangesAndNumbers) {
  EXPECT_EQ(*parse_cores("0-3,8"), (std::vector{0, 1, 2, 3, 8}));
  EXPECT_EQ(*parse_cores("5"), (std::vector{5}));
}

}  // namespace
}  // namespace nssi::testing

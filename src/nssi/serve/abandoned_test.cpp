// SPDX-License-Identifier: BSD-3-Clause
// Handlers that wait hear when nobody waits for their result any more.
#include <gtest/gtest.h>

#include <nssi/testing/testing.hpp>

#include <tuple>

namespace nssi::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

enum WaitingOp : OpCode { kAwait = 100, kSleepOn, kAskOften, kAwaitBriefly, kAwaitInPlace };

constexpr Code kNotYet = Code::kInternal;

/// Handlers that wait, in their ways, on the driver's thread or in a pool, and note how that ended.
class WaitingService {
 public:
  WaitingService(const std::string &transport, bool in_pool) : in_pool_(in_pool) {
    auto options = options_for(transport, true);
    options.endpoint.config.set("nssi.reconnect", "100ms");
    options.pools = {{"heavy", 2}};
    thread = std::make_unique<ServiceThread>(std::move(options), [this](Runtime &runtime) { add_all(runtime); });
  }
  ~WaitingService() { thread.reset(); }

  std::atomic<int> begun{0};
  std::atomic<Code> ended{kNotYet};
  std::unique_ptr<Event> event;
  std::unique_ptr<ServiceThread> thread;

 private:
  void add_all(Runtime &runtime) {
    event = std::make_unique<Event>(runtime);
    add(runtime, kAwait, [this](Request &r) { return r.wait(*event); });
    add(runtime, kSleepOn, [this](Request &r) {
      const auto status = r.sleep_until(Deadline::in(milliseconds(20)));
      return status.ok() ? r.sleep_until(Deadline::never()) : status;
    });
    add(runtime, kAskOften, [&runtime](Request &r) {
      for (;; runtime.sleep_until(Deadline::in(milliseconds(1))))
        if (auto status = r.check(); !status.ok()) return status;
    });
    add(runtime, kAwaitBriefly, [this](Request &r) {
      const auto status = r.wait(*event, Deadline::in(milliseconds(10)));
      return r.check().ok() ? status : r.check();
    });
    (void)runtime.add_operation({kInterface, 0, kAwaitInPlace, "in_place", HandlerKind::kShort, [this](Request &r) {
                                   ended = r.wait(*event).code();
                                   if (r.check().ok()) (void)r.reply();
                                 }});
  }
  template <class Work> void add(Runtime &runtime, OpCode op, Work work) {
    Operation operation{kInterface, 0, op, "waits" + std::to_string(op), HandlerKind::kFiber, [this, work](Request &r) {
                          ++begun;
                          const Status status = work(r);
                          ended = status.code();
                          (void)(status.ok() ? r.reply() : r.reply_error(status.error()));
                        }};
    if (in_pool_) operation.pool = "heavy";
    auto status = runtime.add_operation(std::move(operation));
    EXPECT_TRUE(status.ok()) << status.error().to_string();
  }
  const bool in_pool_;
};

class NssiAbandoned : public ::testing::TestWithParam<std::tuple<std::string, bool>> {
 protected:
  void SetUp() override {
    const auto &[transport, in_pool] = GetParam();
    if (!available(transport)) GTEST_SKIP() << "this machine has no transport " << transport;
    service_ = std::make_unique<WaitingService>(transport, in_pool);
    client_ = open_runtime(options_for(transport, false));
    peer_ = *client_->connect(service_->thread->runtime->url(), Deadline::in(seconds(20)));
  }
  void TearDown() override { client_.reset(), service_.reset(); }
  /// A call whose handler has begun.
  Call begin(OpCode op, const CallOptions &options = {}) {
    auto call = client_->call(at(peer_), op, {}, options);
    EXPECT_TRUE(eventually([&] { return (void)call.test(), service_->begun == 1; }));
    return call;
  }
  bool ends_with(Code code) {
    const bool has_ended = eventually([&] { return service_->ended != kNotYet; });
    EXPECT_EQ(service_->ended, code);
    return has_ended;
  }
  static constexpr OpCode kAll[] = {kAwait, kSleepOn, kAskOften};

  std::unique_ptr<WaitingService> service_;
  std::unique_ptr<Runtime> client_;
  PeerId peer_;
};

TEST_P(NssiAbandoned, AnEventThatIsSet_EndsTheWait) {
  auto call = begin(kAwait);
  service_->event->set();
  EXPECT_TRUE(call.wait().ok());
  EXPECT_TRUE(ends_with(Code::kOk));
}

TEST_P(NssiAbandoned, AWaitWithADeadline_EndsThen) {
  EXPECT_EQ(client_->call(at(peer_), kAwaitBriefly, {}).wait().code(), Code::kTimedOut);
  EXPECT_TRUE(ends_with(Code::kTimedOut));
}

TEST_P(NssiAbandoned, ACallThatIsDropped_EndsTheWait) {
  for (auto op : kAll) {
    { auto dropped = begin(op); }
    EXPECT_TRUE(ends_with(Code::kCancelled)) << op;
    service_->begun = 0, service_->ended = kNotYet;
  }
}

TEST_P(NssiAbandoned, ACallerThatGoes_EndsTheWaitWhenItDoesNotComeBack) {
  for (auto op : kAll) {
    auto call = begin(op);
    client_->disconnect(peer_);
    EXPECT_TRUE(ends_with(Code::kPeerLost)) << op;
    service_->begun = 0, service_->ended = kNotYet;
    peer_ = *client_->connect(service_->thread->runtime->url(), Deadline::in(seconds(20)));
  }
}

/// Its caller may cancel it before the service has looked at the clock.
TEST_P(NssiAbandoned, ADeadlineThatPasses_EndsTheWait) {
  for (auto op : kAll) {
    CallOptions options;
    options.deadline = Deadline::in(milliseconds(300));
    EXPECT_EQ(begin(op, options).wait().code(), Code::kTimedOut) << op;
    ASSERT_TRUE(eventually([&] { return service_->ended != kNotYet; })) << op;
    EXPECT_TRUE(service_->ended == Code::kTimedOut || service_->ended == Code::kCancelled) << op;
    service_->begun = 0, service_->ended = kNotYet;
  }
}

TEST_P(NssiAbandoned, NobodyWaitsForAOneWayCall_WhichGoesOn) {
  CallOptions options;
  options.one_way = true;
  options.deadline = Deadline::in(milliseconds(200));
  EXPECT_TRUE(begin(kAwait, options).wait().ok());
  client_->disconnect(peer_);
  std::this_thread::sleep_for(milliseconds(400));
  EXPECT_EQ(service_->ended, kNotYet);
  service_->event->set();
  EXPECT_TRUE(ends_with(Code::kOk));
}

TEST_P(NssiAbandoned, ADestroyedRuntime_EndsTheWait) {
  auto call = begin(kAskOften);
  service_->thread->stop();
  service_->thread.reset();
  EXPECT_TRUE(ends_with(Code::kCancelled));
}

TEST_P(NssiAbandoned, AHandlerWithoutAFiber_CannotWait) {
  EXPECT_TRUE(client_->call(at(peer_), kAwaitInPlace, {}).wait().ok());
  EXPECT_TRUE(ends_with(Code::kInvalidArgument));
}

INSTANTIATE_TEST_SUITE_P(Over, NssiAbandoned,
                         ::testing::Combine(::testing::Values("inproc", "shm", "ofi"), ::testing::Bool()),
                         [](const auto &info) {
                           return std::get<0>(info.param) + (std::get<1>(info.param) ? "_pool" : "_fiber");
                         });

}  // namespace
}  // namespace nssi::testing

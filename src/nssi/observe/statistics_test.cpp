// SPDX-License-Identifier: BSD-3-Clause
// What a runtime counts, on both sides of a call.
#include <nssi/statistics.hpp>

#include <gtest/gtest.h>

#include <nssi/testing/testing.hpp>

#include <nlohmann/json.hpp>

#include <numeric>

namespace nssi::testing {
namespace {

std::uint64_t count_of(const std::vector<ErrorCount> &errors, Code code) {
  for (const auto &error : errors)
    if (error.code == code) return error.count;
  return 0;
}

const OperationStatistics &operation(const Statistics &statistics, OpCode op) {
  for (const auto &each : statistics.operations)
    if (each.interface == kInterface && each.op == op) return each;
  throw std::runtime_error("no such operation");
}

class NssiStatistics : public ::testing::Test {
 protected:
  void open(const std::function<void(RuntimeOptions &)> &change = [](RuntimeOptions &) {}) {
    auto options = options_for("shm", true);
    change(options);
    service_.emplace(options);
    client_ = open_runtime(options_for("shm", false));
    auto peer = client_->connect(service_->runtime->url(), Deadline::in(std::chrono::seconds(10)));
    ASSERT_TRUE(peer.ok()) << peer.error().message;
    peer_ = *peer;
  }
  Status call(OpCode op, std::span<const std::byte> args = {}, const CallOptions &options = {}) {
    return client_->call(at(peer_), op, args, options).wait();
  }
  /// Once the handlers that have replied have ended.
  Statistics after(OpCode op, std::uint64_t calls) {
    EXPECT_TRUE(eventually([&] { return operation(service_->runtime->statistics(), op).calls >= calls; }));
    return service_->runtime->statistics();
  }

  std::optional<ServiceThread> service_;
  std::unique_ptr<Runtime> client_;
  PeerId peer_;
};

TEST_F(NssiStatistics, CountCallsAndTheirBytes) {
  open();
  const Bytes args(100);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(call(kEcho, args).ok());
  const auto echo = operation(after(kEcho, 3), kEcho);
  EXPECT_EQ(echo.name, "test3");
  EXPECT_EQ(echo.calls, 3u);
  EXPECT_EQ(echo.args_bytes, 300u);
  EXPECT_EQ(echo.result_bytes, 300u);
  EXPECT_TRUE(echo.errors.empty());
  EXPECT_EQ(operation(service_->runtime->statistics(), kNoop).calls, 0u);
}

TEST_F(NssiStatistics, CountErrorsByTheirCodeOnBothSides) {
  open();
  EXPECT_EQ(call(kFail).code(), Code::kIo);
  EXPECT_EQ(call(kNoReply).code(), Code::kNoResult);
  const auto statistics = after(kNoReply, 1);
  EXPECT_EQ(count_of(operation(statistics, kFail).errors, Code::kIo), 1u);
  EXPECT_EQ(count_of(operation(statistics, kNoReply).errors, Code::kNoResult), 1u);
  const auto calls = client_->statistics().calls;
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].op, kFail);
  EXPECT_EQ(calls[0].calls, 1u);
  EXPECT_EQ(count_of(calls[0].errors, Code::kIo), 1u);
  EXPECT_EQ(calls[0].peer, service_->runtime->url());
}

TEST_F(NssiStatistics, CountWhatIsNoOperationAsRefused) {
  open();
  EXPECT_EQ(call(999).code(), Code::kNotFound);
  EXPECT_EQ(service_->runtime->statistics().refused, 1u);
}

TEST_F(NssiStatistics, CountEveryCallAlthoughQuickOnesAreTimedNowAndThen) {
  open();
  constexpr std::uint64_t kCalls = 1000;
  for (std::uint64_t i = 0; i < kCalls; ++i) ASSERT_TRUE(call(kNoopShort).ok());
  const auto noop = operation(after(kNoopShort, kCalls), kNoopShort);
  EXPECT_EQ(noop.calls, kCalls);
  for (const auto &times : {noop.queueing, noop.execution, client_->statistics().calls[0].round_trip}) {
    EXPECT_GT(times.count, kCalls - 16);
    EXPECT_LE(times.count, kCalls);
    const auto sum = std::accumulate(times.buckets.begin(), times.buckets.end(), std::uint64_t{0},
                                     [](std::uint64_t so_far, const auto &bucket) { return so_far + bucket.count; });
    EXPECT_EQ(sum, times.count);
  }
  EXPECT_GE(noop.execution.percentile_ns(0.99), noop.execution.percentile_ns(0.5));
  EXPECT_LE(noop.execution.percentile_ns(1), noop.execution.max_ns);
}

TEST_F(NssiStatistics, TellWaitingFromExecuting) {
  constexpr auto kLong = std::chrono::milliseconds(200);
  constexpr std::uint64_t kAtLeast_ns = 100'000'000;  // the server may have been late to hear of the call
  open([](RuntimeOptions &options) { options.max_fibers = 1; });
  auto first = client_->call(at(peer_), kBlock, {});
  ASSERT_TRUE(eventually([&] { return service_->service->blocked.load() == 1; }));
  auto second = client_->call(at(peer_), kNoop, {});
  const auto until = Deadline::in(kLong);
  while (!until.passed()) (void)second.test();
  ASSERT_TRUE(call(kRelease).ok());
  ASSERT_TRUE(first.wait().ok() && second.wait().ok());
  const auto statistics = after(kNoop, 1);
  EXPECT_GE(operation(statistics, kNoop).queueing.max_ns, kAtLeast_ns);
  EXPECT_LT(operation(statistics, kNoop).execution.max_ns, operation(statistics, kNoop).queueing.max_ns);
  EXPECT_GE(operation(statistics, kBlock).execution.max_ns, kAtLeast_ns);
}

TEST_F(NssiStatistics, CountTransfersAndTheirBytes) {
  open();
  auto memory = client_->allocate(1 << 20, nnti::Rights::kReadWrite);
  ASSERT_TRUE(memory.ok());
  const auto bytes = pattern(memory->bytes().size());
  std::ranges::copy(bytes, memory->bytes().begin());
  CallOptions with_data;
  with_data.data = &*memory;
  ASSERT_TRUE(call(kPull, {}, with_data).ok());
  ASSERT_TRUE(call(kPush, {}, with_data).ok());
  const auto statistics = after(kPush, 1);
  EXPECT_EQ(operation(statistics, kPull).pulled_bytes, bytes.size());
  EXPECT_EQ(operation(statistics, kPull).transfer.count, 1u);
  EXPECT_GT(operation(statistics, kPull).transfer.sum_ns, 0u);
  EXPECT_EQ(operation(statistics, kPush).pushed_bytes, bytes.size());
  ASSERT_EQ(statistics.callers.size(), 1u);
  EXPECT_EQ(statistics.callers[0].in_bytes, bytes.size());
  EXPECT_GE(statistics.callers[0].out_bytes, bytes.size());
  EXPECT_EQ(statistics.callers[0].transport, "shm");
  EXPECT_EQ(statistics.callers[0].session.size(), 16u);
  const auto &caller = statistics.callers[0];
  EXPECT_GE(caller.execution.count, 1u);
  EXPECT_EQ(caller.queueing.count, caller.execution.count);
  EXPECT_GE(caller.transfer.count, 1u);
  EXPECT_GE(caller.execution.max_ns, caller.transfer.max_ns);
}

TEST_F(NssiStatistics, CountWhatRunsInAPool) {
  auto options = options_for("shm", true);
  options.pools = {{.name = "pool"}};
  ServiceThread service(options, [](Runtime &runtime) {
    auto handler = [](Request &request) { (void)request.reply(); };
    ASSERT_TRUE(
        runtime.add_operation({kInterface, 0, 500, "pooled", HandlerKind::kFiber, handler, {}, false, "pool"}).ok());
  });
  auto client = open_runtime(options_for("shm", false));
  auto peer = client->connect(service.runtime->url(), Deadline::in(std::chrono::seconds(10)));
  ASSERT_TRUE(peer.ok());
  ASSERT_TRUE(client->call(at(*peer), 500, {}).wait().ok());
  EXPECT_TRUE(eventually([&] { return operation(service.runtime->statistics(), 500).execution.count == 1; }));
}

TEST_F(NssiStatistics, SayWhoIsTurnedAwayAndWhoWaits) {
  open([](RuntimeOptions &options) { options.limits.requests = 1; });
  auto first = client_->call(at(peer_), kBlock, {});
  ASSERT_TRUE(eventually([&] { return first.test() || service_->service->blocked.load() == 1; }));
  auto second = client_->call(at(peer_), kNoop, {});
  ASSERT_TRUE(eventually([&] { return second.test() || client_->statistics().calls[1].held_back == 1; }));
  const auto statistics = service_->runtime->statistics();
  EXPECT_EQ(operation(statistics, kNoop).turned_away, 1u);
  ASSERT_FALSE(statistics.services.empty());
  const auto service = std::ranges::find(statistics.services, kInterface, &ServiceStatistics::interface);
  ASSERT_NE(service, statistics.services.end());
  EXPECT_EQ(service->requests, 1u);
  EXPECT_EQ(service->callers_waiting, 1u);
  EXPECT_EQ(service->limits.requests, 1u);
  service_->service->release_blocked();
  EXPECT_TRUE(first.wait().ok() && second.wait().ok());
}

TEST_F(NssiStatistics, AreNotCountedIfTheyAreTurnedOff) {
  open([](RuntimeOptions &options) { options.endpoint.config.set("nssi.statistics", "off"); });
  ASSERT_TRUE(call(kEcho).ok());
  const auto statistics = service_->runtime->statistics();
  EXPECT_FALSE(statistics.is_counted);
  EXPECT_EQ(operation(statistics, kEcho).calls, 0u);
}

TEST_F(NssiStatistics, BecomeJsonThatHasTheFieldsNames) {
  open();
  EXPECT_EQ(call(kFail).code(), Code::kIo);
  const auto json = nlohmann::json::parse(to_json(after(kFail, 1)));
  const auto &operations = json["operations"];
  const auto fail = std::ranges::find_if(operations, [](const auto &each) { return each["name"] == "test10"; });
  ASSERT_NE(fail, operations.end());
  EXPECT_EQ((*fail)["errors"]["IO"], 1);
  EXPECT_EQ((*fail)["execution"]["buckets"].size(), 1u);
  EXPECT_EQ(json["callers"][0]["errors"], 1);
}

TEST(NssiStatisticsSetting, ThatCannotBeReadIsAnError) {
  auto options = options_for("inproc", true);
  options.endpoint.config.set("nssi.statistics", "perhaps");
  const auto runtime = Runtime::open(options);
  ASSERT_FALSE(runtime.ok());
  EXPECT_NE(runtime.error().message.find("nssi.statistics"), std::string::npos);
}

}  // namespace
}  // namespace nssi::testing

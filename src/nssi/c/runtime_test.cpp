// SPDX-License-Identifier: BSD-3-Clause
// nssi/runtime.h: a client and a service that speak to each other through it alone.
#include <nssi/nssi.h>
#include <nssi/runtime.h>

#include <gtest/gtest.h>

#include <atomic>

#include <nssi/testing/testing.hpp>

namespace nssi::testing {
namespace {

constexpr std::uint32_t kProgram = 0x20000100, kVersion = 3;

enum COp : std::uint32_t {
  kCEcho,
  kCPull,
  kCPush,
  kCFail,
  kCSilent,
  kCSleep,
  kCBlind,
  kCTwice,
  kCClose,
  kCGoOn,
  kCHold,
  kCWho
};

/// What the handlers see.
struct Seen {
  nssi_rt_runtime *runtime = nullptr;
  std::atomic<nssi_rt_request *> last_request = nullptr;
  std::atomic<int> code = -1;
  std::atomic<std::int64_t> time_left_ms = -2;
  std::atomic<bool> sleeps{false}, may_go{false};
  std::atomic<int> held{0};
};

void echo(void *context, nssi_rt_request *request) {
  const void *bytes = nullptr;
  std::uint64_t size = 0;
  auto &seen = *static_cast<Seen *>(context);
  seen.last_request = request;
  seen.time_left_ms = nssi_rt_time_left_ms(request);
  if (nssi_rt_args(request, &bytes, &size) == NESSIE_OK) (void)nssi_rt_reply(request, bytes, size);
}
void pull(void *, nssi_rt_request *request) {
  Bytes data(nssi_rt_data_bytes(request));
  if (nssi_rt_get_data(request, data.data(), data.size(), 0) != NESSIE_OK) return;
  const char same = data == pattern(data.size()) ? 1 : 0;
  (void)nssi_rt_reply(request, &same, 1);
}
void push(void *, nssi_rt_request *request) {
  const auto data = pattern(nssi_rt_data_bytes(request));
  if (nssi_rt_put_data(request, data.data(), data.size(), 0) == NESSIE_OK) (void)nssi_rt_reply(request, nullptr, 0);
}
void refuse(void *, nssi_rt_request *request) {
  (void)nssi_rt_reply_error(request, NESSIE_IO, NSSI_RT_SCOPE_SERVICE, 28, "No space left on device: free some");
}
void silent(void *, nssi_rt_request *) {}
void sleep_long(void *context, nssi_rt_request *request) {
  auto &seen = *static_cast<Seen *>(context);
  seen.sleeps = true;
  seen.code = nssi_rt_sleep(seen.runtime, 60'000);
  (void)nssi_rt_reply(request, nullptr, 0);
}
void go_on(void *context, nssi_rt_request *request) {
  auto &seen = *static_cast<Seen *>(context);
  int code = nssi_rt_check(request);
  seen.sleeps = code == NESSIE_OK;
  for (; code == NESSIE_OK; code = nssi_rt_check(request)) (void)nssi_rt_sleep(seen.runtime, 1);
  seen.code = code;
}
/// Until the test lets it go.
void hold(void *context, nssi_rt_request *request) {
  auto &seen = *static_cast<Seen *>(context);
  for (++seen.held; !seen.may_go;) (void)nssi_rt_sleep(seen.runtime, 1);
  (void)nssi_rt_reply(request, "done", 4);
}
/// The role, and the identity.
void who(void *, nssi_rt_request *request) {
  std::uint8_t answer[17] = {static_cast<std::uint8_t>(nssi_rt_role(request))};
  if (nssi_rt_caller_identity(request, &answer[1]) == NESSIE_OK) (void)nssi_rt_reply(request, answer, sizeof answer);
}
void pull_beyond(void *context, nssi_rt_request *request) {
  char byte = 0;
  static_cast<Seen *>(context)->code = nssi_rt_get_data(request, &byte, 1, nssi_rt_data_bytes(request));
  (void)nssi_rt_reply(request, nullptr, 0);
}
void reply_twice(void *context, nssi_rt_request *request) {
  (void)nssi_rt_reply(request, nullptr, 0);
  static_cast<Seen *>(context)->code = nssi_rt_reply(request, nullptr, 0);
}
void close_own(void *context, nssi_rt_request *request) {
  auto &seen = *static_cast<Seen *>(context);
  seen.code = nssi_rt_close(seen.runtime);
  (void)nssi_rt_reply(request, nullptr, 0);
}

class NssiRuntimeInC : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!available(GetParam())) GTEST_SKIP() << "this machine has no transport " << GetParam();
    server_ = open(false, "operator_credential = " + secret_.to_hex() + "\nnssi.limit.requests = 1000");
    seen_.runtime = server_;
    add(kCEcho, echo), add(kCPull, pull), add(kCPush, push), add(kCFail, refuse), add(kCSilent, silent);
    add(kCSleep, sleep_long), add(kCBlind, pull_beyond), add(kCTwice, reply_twice), add(kCGoOn, go_on);
    add(kCHold, hold), add(kCWho, who);
    add(kCClose, close_own, NSSI_RT_SHORT);
    thread_ = std::thread([this] { EXPECT_EQ(nssi_rt_run(server_), NESSIE_OK); });
    runtime_ = open(true);
    ASSERT_EQ(nssi_rt_connect(runtime_, nssi_rt_url(server_), 20'000, &service_.peer), NESSIE_OK);
    service_.program = kProgram;
    service_.version = kVersion;
  }
  void TearDown() override {
    if (runtime_ != nullptr) { EXPECT_EQ(nssi_rt_close(runtime_), NESSIE_OK); }
    stop_server();
  }
  void stop_server() {
    if (!thread_.joinable()) return;
    EXPECT_EQ(nssi_rt_stop(server_), NESSIE_OK);
    close_server();
  }
  void close_server() {
    thread_.join();
    EXPECT_EQ(nssi_rt_close(server_), NESSIE_OK);
  }
  nssi_rt_runtime *open(bool connects_only, const std::string &settings = {}) {
    nssi_rt_options options{};
    options.transports = GetParam().c_str();
    const auto all = "nnti.ofi.provider = tcp\n nnti.ofi.address=127.0.0.1\n\n" + settings;
    options.settings = all.c_str();
    options.connects_only = connects_only ? 1 : 0;
    nssi_rt_runtime *runtime = nullptr;
    EXPECT_EQ(nssi_rt_open(&options, &runtime), NESSIE_OK) << nssi_rt_last_error();
    return runtime;
  }
  void add(std::uint32_t op, nssi_rt_handler handler, std::int32_t kind = NSSI_RT_FIBER) {
    const nssi_rt_operation operation{kProgram, kVersion, 0, op, "test", kind, 0, handler, &seen_};
    ASSERT_EQ(nssi_rt_add_operation(server_, &operation), NESSIE_OK) << nssi_rt_last_error();
  }
  nssi_rt_call *start(std::uint32_t op, const Bytes &args = {}, nssi_rt_buffer *buffer = nullptr,
                      std::int32_t timeout_ms = 0) {
    nssi_rt_call_options options{};
    options.buffer = buffer;
    options.timeout_ms = timeout_ms;
    nssi_rt_call *call = nullptr;
    EXPECT_EQ(nssi_rt_start(runtime_, &service_, op, args.data(), args.size(), &options, &call), NESSIE_OK);
    return call;
  }
  /// Waits for it, and frees it.
  int finish(nssi_rt_call *call, Bytes *result = nullptr) {
    const int code = nssi_rt_wait(call, -1);
    const void *bytes = nullptr;
    std::uint64_t size = 0;
    if (code == NESSIE_OK && nssi_rt_result(call, &bytes, &size) == NESSIE_OK && result != nullptr)
      result->assign(static_cast<const std::byte *>(bytes), static_cast<const std::byte *>(bytes) + size);
    EXPECT_EQ(nssi_rt_free_call(call), NESSIE_OK);
    return code;
  }

  /// A call of an operation that is held, when it has begun.
  nssi_rt_call *start_held(std::int32_t timeout_ms = 0) {
    const int before = seen_.held;
    auto *call = start(kCHold, {}, nullptr, timeout_ms);
    EXPECT_TRUE(has_begun(before + 1));
    return call;
  }
  bool has_begun(int held) {
    return eventually([&] { return (void)nssi_rt_sleep(runtime_, 0), seen_.held == held; });
  }
  nssi_rt_call *start_with(const nssi_rt_call_options &options, std::uint32_t op) {
    nssi_rt_call *call = nullptr;
    EXPECT_EQ(nssi_rt_start(runtime_, &service_, op, nullptr, 0, &options, &call), NESSIE_OK);
    return call;
  }

  const nessie::Credential secret_ = nessie::Credential::generate();
  Seen seen_;
  nssi_rt_runtime *server_ = nullptr, *runtime_ = nullptr;
  nssi_rt_service service_{};
  std::thread thread_;
};

TEST_P(NssiRuntimeInC, CarriesArgumentsAndResultsOfEverySize) {
  for (std::size_t size : {0, 1, 511, 4096, 100'000, 1 << 20}) {
    Bytes result;
    EXPECT_EQ(finish(start(kCEcho, pattern(size)), &result), NESSIE_OK) << nssi_rt_last_error();
    EXPECT_EQ(result, pattern(size));
  }
  EXPECT_GT(seen_.time_left_ms, 0);
}

TEST_P(NssiRuntimeInC, EncodersWriteWhereTheServiceReads) {
  const auto bytes = pattern(200'000);
  const auto encode = [](void *from, void *to, std::uint64_t size) { std::memcpy(to, from, size); };
  nssi_rt_call *call = nullptr;
  ASSERT_EQ(nssi_rt_start_encoded(runtime_, &service_, kCEcho, bytes.size(), encode, const_cast<std::byte *>(&bytes[0]),
                                  nullptr, &call),
            NESSIE_OK);
  Bytes result;
  EXPECT_EQ(finish(call, &result), NESSIE_OK);
  EXPECT_EQ(result, bytes);
}

TEST_P(NssiRuntimeInC, MovesBulkDataBothWays) {
  nssi_rt_buffer *buffer = nullptr;
  ASSERT_EQ(nssi_rt_allocate(runtime_, 100'000, NSSI_RT_READ_WRITE, &buffer), NESSIE_OK);
  EXPECT_EQ(nssi_rt_buffer_size(buffer), 100'000u);
  EXPECT_EQ(finish(start(kCPush, {}, buffer)), NESSIE_OK);
  EXPECT_EQ(std::memcmp(nssi_rt_buffer_bytes(buffer), pattern(100'000).data(), 100'000), 0);
  Bytes same;
  EXPECT_EQ(finish(start(kCPull, {}, buffer), &same), NESSIE_OK);
  EXPECT_EQ(same, Bytes{std::byte{1}});
  EXPECT_EQ(finish(start(kCBlind, {}, buffer)), NESSIE_OK);
  EXPECT_EQ(seen_.code, NESSIE_OUT_OF_RANGE);
  EXPECT_EQ(nssi_rt_free_buffer(buffer), NESSIE_OK);
  EXPECT_EQ(nssi_rt_free_buffer(buffer), NESSIE_INVALID_ARGUMENT);
}

TEST_P(NssiRuntimeInC, AHandlersErrorArrivesAsItWas) {
  EXPECT_EQ(finish(start(kCFail)), NESSIE_IO);
  EXPECT_EQ(nssi_rt_last_code(), NESSIE_IO);
  EXPECT_EQ(nssi_rt_last_scope(), NSSI_RT_SCOPE_SERVICE);
  EXPECT_EQ(nssi_rt_last_cause(), 28);
  EXPECT_STREQ(nssi_rt_last_error(), "No space left on device: free some");
}

TEST_P(NssiRuntimeInC, WhatCannotBeServed_IsSaid) {
  EXPECT_EQ(finish(start(kCSilent)), NESSIE_NO_RESULT);
  EXPECT_EQ(finish(start(999)), NESSIE_NOT_FOUND);
  service_.version = 9;
  EXPECT_EQ(finish(start(kCEcho)), NESSIE_UNSUPPORTED);
  service_.version = kVersion;
  service_.provider = 1;
  EXPECT_EQ(finish(start(kCEcho)), NESSIE_NOT_FOUND);
}

TEST_P(NssiRuntimeInC, ACallEndsAtItsDeadline_AWaitBefore) {
  auto *call = start(kCSleep, {}, nullptr, 50);
  std::int32_t over = -1;
  EXPECT_EQ(nssi_rt_wait(call, 0), NESSIE_TIMED_OUT);
  EXPECT_EQ(nssi_rt_test(call, &over), NESSIE_OK);
  EXPECT_EQ(over, 0);
  EXPECT_EQ(nssi_rt_wait(call, -1), NESSIE_TIMED_OUT);
  EXPECT_EQ(nssi_rt_test(call, &over), NESSIE_OK);
  EXPECT_EQ(over, 1);
  EXPECT_EQ(nssi_rt_free_call(call), NESSIE_OK);
}

TEST_P(NssiRuntimeInC, ClosingARuntimeWakesItsHandlers) {
  auto *call = start(kCSleep);
  EXPECT_TRUE(eventually([&] {
    std::int32_t over = 0;
    return nssi_rt_test(call, &over) == NESSIE_OK && seen_.sleeps;
  }));
  stop_server();
  EXPECT_EQ(seen_.code, NESSIE_CANCELLED);
  EXPECT_EQ(nssi_rt_free_call(call), NESSIE_OK);
}

TEST_P(NssiRuntimeInC, ACancelledCallGivesItsBufferBack) {
  nssi_rt_buffer *buffer = nullptr;
  ASSERT_EQ(nssi_rt_allocate(runtime_, 100, NSSI_RT_READ_WRITE, &buffer), NESSIE_OK);
  auto *call = start(kCSleep, {}, buffer);
  EXPECT_EQ(nssi_rt_free_buffer(buffer), NESSIE_BUSY);
  EXPECT_EQ(nssi_rt_cancel(call), NESSIE_OK);
  EXPECT_EQ(nssi_rt_free_buffer(buffer), NESSIE_OK);
  EXPECT_EQ(nssi_rt_wait(call, -1), NESSIE_CANCELLED);
  EXPECT_EQ(nssi_rt_free_call(call), NESSIE_OK);
}

TEST_P(NssiRuntimeInC, SeveralCalls_AreWaitedForInTurnOrTogether) {
  nssi_rt_call *calls[4] = {start(kCSleep, {}, nullptr, 30'000), nullptr, start(kCEcho, pattern(3)), start(kCFail)};
  std::uint64_t which = 99;
  for (int i = 0; i < 2; ++i) {
    const int code = nssi_rt_wait_any(calls, 4, -1, &which);
    ASSERT_TRUE(which == 2 || which == 3);
    EXPECT_EQ(code, which == 2 ? NESSIE_OK : NESSIE_IO);
    EXPECT_EQ(nssi_rt_free_call(calls[which]), NESSIE_OK);
    calls[which] = nullptr;
  }
  which = 99;
  EXPECT_EQ(nssi_rt_wait_any(calls, 4, 1, &which), NESSIE_TIMED_OUT);
  EXPECT_EQ(nssi_rt_wait_any(calls + 1, 3, -1, &which), NESSIE_NOT_FOUND);
  EXPECT_EQ(which, 99u);
  calls[1] = start(kCEcho);
  EXPECT_EQ(nssi_rt_wait_all(calls + 1, 3, -1), NESSIE_OK);
  EXPECT_EQ(nssi_rt_wait_all(calls, 4, 1), NESSIE_TIMED_OUT);
  EXPECT_EQ(nssi_rt_free_call(calls[0]), NESSIE_OK);
  EXPECT_EQ(nssi_rt_free_call(calls[1]), NESSIE_OK);
}

TEST_P(NssiRuntimeInC, AHandleThatIsNotOpen_IsAnError) {
  auto *call = start(kCEcho);
  const void *bytes = nullptr;
  std::uint64_t size = 0, peer = 0;
  EXPECT_EQ(finish(call), NESSIE_OK);
  EXPECT_EQ(nssi_rt_wait(call, -1), NESSIE_INVALID_ARGUMENT);
  EXPECT_EQ(nssi_rt_free_call(call), NESSIE_INVALID_ARGUMENT);
  EXPECT_EQ(nssi_rt_free_call(nullptr), NESSIE_INVALID_ARGUMENT);
  EXPECT_EQ(nssi_rt_wait(reinterpret_cast<nssi_rt_call *>(runtime_), 0), NESSIE_INVALID_ARGUMENT) << "another kind";
  EXPECT_EQ(finish(start(kCSilent)), NESSIE_NO_RESULT);  // which is sent when the handlers have returned
  EXPECT_EQ(nssi_rt_args(seen_.last_request, &bytes, &size), NESSIE_INVALID_ARGUMENT) << "its handler has returned";
  EXPECT_EQ(nssi_rt_reply(seen_.last_request, nullptr, 0), NESSIE_INVALID_ARGUMENT);
  EXPECT_EQ(nssi_rt_url(nullptr), nullptr);
  EXPECT_EQ(nssi_rt_connect(nullptr, "", 0, &peer), NESSIE_INVALID_ARGUMENT);
}

TEST_P(NssiRuntimeInC, ATimeoutBelowMinusOne_IsAnError) {
  for (const std::int32_t timeout_ms : {-2, -7, INT32_MIN}) {
    std::uint64_t peer = 99, which = 99;
    EXPECT_EQ(nssi_rt_connect(runtime_, nssi_rt_url(server_), timeout_ms, &peer), NESSIE_INVALID_ARGUMENT);
    EXPECT_EQ(peer, 99u);
    auto *call = start(kCEcho);
    EXPECT_EQ(nssi_rt_wait(call, timeout_ms), NESSIE_INVALID_ARGUMENT);
    EXPECT_EQ(nssi_rt_wait_any(&call, 1, timeout_ms, &which), NESSIE_INVALID_ARGUMENT);
    EXPECT_EQ(which, 99u);
    EXPECT_EQ(nssi_rt_wait_all(&call, 1, timeout_ms), NESSIE_INVALID_ARGUMENT);
    EXPECT_EQ(finish(call), NESSIE_OK) << "it has gone on";
    nssi_rt_call_options options{};
    options.timeout_ms = timeout_ms;
    call = nullptr;
    EXPECT_EQ(nssi_rt_start(runtime_, &service_, kCEcho, nullptr, 0, &options, &call), NESSIE_INVALID_ARGUMENT);
    EXPECT_EQ(call, nullptr);
  }
  EXPECT_EQ(finish(start(kCEcho, {}, nullptr, -1)), NESSIE_OK);
}

TEST_P(NssiRuntimeInC, MemoryThatDoesNotFitTheAddressSpace_IsRefused) {
  char byte = 0;
  nssi_rt_buffer *buffer = nullptr;
  for (const std::uint64_t size : {~std::uint64_t{0}, ~std::uint64_t{0} - reinterpret_cast<std::uintptr_t>(&byte) + 1})
    EXPECT_EQ(nssi_rt_register(runtime_, &byte, size, NSSI_RT_READ, &buffer), NESSIE_INVALID_ARGUMENT);
  EXPECT_EQ(buffer, nullptr);
}

TEST_P(NssiRuntimeInC, HandlersMistakesAreTold) {
  EXPECT_EQ(finish(start(kCTwice)), NESSIE_OK);
  EXPECT_TRUE(eventually([&] { return seen_.code == NESSIE_EXISTS; }));
  EXPECT_EQ(finish(start(kCClose)), NESSIE_OK);
  EXPECT_EQ(seen_.code, NESSIE_INVALID_ARGUMENT);
}

TEST_P(NssiRuntimeInC, CallsAndBuffersMayOutliveTheirRuntime) {
  nssi_rt_buffer *buffer = nullptr;
  ASSERT_EQ(nssi_rt_allocate(runtime_, 100, NSSI_RT_READ, &buffer), NESSIE_OK);
  auto *call = start(kCSleep, {}, buffer);
  EXPECT_EQ(nssi_rt_close(runtime_), NESSIE_OK);
  EXPECT_EQ(nssi_rt_close(runtime_), NESSIE_INVALID_ARGUMENT);
  runtime_ = nullptr;
  static_cast<char *>(nssi_rt_buffer_bytes(buffer))[99] = 1;
  EXPECT_EQ(nssi_rt_wait(call, -1), NESSIE_CANCELLED);
  EXPECT_EQ(nssi_rt_free_buffer(buffer), NESSIE_OK);
  EXPECT_EQ(nssi_rt_free_call(call), NESSIE_OK);
}

TEST_P(NssiRuntimeInC, AHandlerHearsThatNobodyWaitsForItAnyMore) {
  auto *call = start(kCGoOn);
  ASSERT_TRUE(eventually([&] { return (void)nssi_rt_sleep(runtime_, 0), seen_.sleeps.load(); }));
  EXPECT_EQ(nssi_rt_cancel(call), NESSIE_OK);
  EXPECT_TRUE(eventually([&] { return seen_.code == NESSIE_CANCELLED; }));
  EXPECT_EQ(nssi_rt_free_call(call), NESSIE_OK);
  EXPECT_EQ(nssi_rt_check(nullptr), NESSIE_INVALID_ARGUMENT);
}

TEST_P(NssiRuntimeInC, AOneWayCall_IsOverWhenItsHandlerBegins_AndGoesOnWhenItIsFreed) {
  nssi_rt_call_options options{};
  options.one_way = 1;
  auto *call = start_with(options, kCHold);
  EXPECT_EQ(nssi_rt_wait(call, -1), NESSIE_OK) << "though its handler is held";
  const void *bytes = &bytes;
  std::uint64_t size = 9;
  EXPECT_EQ(nssi_rt_result(call, &bytes, &size), NESSIE_OK);
  EXPECT_EQ(size, 0u);
  EXPECT_EQ(nssi_rt_free_call(call), NESSIE_OK);
  EXPECT_EQ(nssi_rt_free_call(start_with(options, kCHold)), NESSIE_OK);
  EXPECT_TRUE(has_begun(2));
  nssi_rt_buffer *buffer = nullptr;
  ASSERT_EQ(nssi_rt_allocate(runtime_, 100, NSSI_RT_READ, &buffer), NESSIE_OK);
  options.buffer = buffer;
  EXPECT_EQ(finish(start_with(options, kCHold)), NESSIE_INVALID_ARGUMENT);
  EXPECT_EQ(nssi_rt_free_buffer(buffer), NESSIE_OK);
  seen_.may_go = true;
}

TEST_P(NssiRuntimeInC, ABusyService_IsWaitedForOrSaysWhenToComeBack) {
  (void)nssi_rt_free_call(start(kCEcho));
  auto *server = open(false, "nssi.limit.requests = 1");
  const nssi_rt_operation operation{kProgram, kVersion, 0, kCHold, "held", NSSI_RT_FIBER, 0, hold, &seen_};
  ASSERT_EQ(nssi_rt_add_operation(server, &operation), NESSIE_OK);
  std::thread thread([&] { EXPECT_EQ(nssi_rt_run(server), NESSIE_OK); });
  ASSERT_EQ(nssi_rt_connect(runtime_, nssi_rt_url(server), 20'000, &service_.peer), NESSIE_OK);
  seen_.runtime = server;
  auto *first = start_held();
  nssi_rt_call_options options{};
  options.when_busy = NSSI_RT_FAIL_WHEN_BUSY;
  auto *refused = start_with(options, kCHold);
  EXPECT_EQ(nssi_rt_wait(refused, -1), NESSIE_BUSY);
  EXPECT_GT(nssi_rt_last_retry_after_ms(), 0);
  EXPECT_EQ(nssi_rt_free_call(refused), NESSIE_OK);
  auto *waits = start(kCHold);
  EXPECT_EQ(nssi_rt_wait(waits, 1), NESSIE_TIMED_OUT);
  EXPECT_EQ(nssi_rt_last_retry_after_ms(), 0) << "of the last error";
  seen_.may_go = true;
  EXPECT_EQ(finish(first), NESSIE_OK);
  EXPECT_EQ(finish(waits), NESSIE_OK);
  options.when_busy = 7;
  EXPECT_EQ(nssi_rt_start(runtime_, &service_, kCHold, nullptr, 0, &options, &first), NESSIE_INVALID_ARGUMENT);
  EXPECT_EQ(nssi_rt_stop(server), NESSIE_OK);
  thread.join();
  EXPECT_EQ(nssi_rt_close(server), NESSIE_OK);
}

TEST_P(NssiRuntimeInC, OnOver_IsCalledOnceAlsoForACallThatIsFreed) {
  std::atomic<int> told{0};
  nssi_rt_call_options options{};
  options.on_over = [](void *context) { ++*static_cast<std::atomic<int> *>(context); };
  options.context = &told;
  EXPECT_EQ(finish(start_with(options, kCEcho)), NESSIE_OK);
  EXPECT_EQ(told, 1);
  EXPECT_EQ(nssi_rt_free_call(start_with(options, kCSleep)), NESSIE_OK);
  EXPECT_EQ(told, 2);
}

TEST_P(NssiRuntimeInC, WhenItIsOver_ItsCallbackMayWaitAndFreeIt) {
  struct Told {
    nssi_rt_call *call;
    std::function<int()> call_next;
    std::atomic<int> code{-1};
  } told{start_held(), [this] { return finish(start(kCEcho, pattern(3))); }, {-1}};
  const auto callback = [](void *context) {
    auto &it = *static_cast<Told *>(context);
    const int code = nssi_rt_wait(it.call, 0);
    EXPECT_EQ(nssi_rt_free_call(it.call), NESSIE_OK);
    it.code = code == NESSIE_OK ? it.call_next() : code;
  };
  EXPECT_EQ(nssi_rt_when_over(told.call, nullptr, &told), NESSIE_INVALID_ARGUMENT);
  EXPECT_EQ(nssi_rt_when_over(told.call, callback, &told), NESSIE_OK);
  seen_.may_go = true;
  EXPECT_TRUE(eventually([&] { return (void)nssi_rt_sleep(runtime_, 0), told.code != -1; }));
  EXPECT_EQ(told.code, NESSIE_OK);
}

TEST_P(NssiRuntimeInC, Multicast_AsksAllAndKeepsTheirOrder) {
  auto missing = service_;
  missing.provider = 9;
  const nssi_rt_service services[] = {service_, missing, service_};
  nssi_rt_call *calls[3] = {};
  const auto args = pattern(10);
  EXPECT_EQ(nssi_rt_multicast(runtime_, services, 3, kCEcho, args.data(), 10, nullptr, nullptr),
            NESSIE_INVALID_ARGUMENT);
  ASSERT_EQ(nssi_rt_multicast(runtime_, services, 3, kCEcho, args.data(), 10, nullptr, calls), NESSIE_OK);
  EXPECT_EQ(nssi_rt_wait_all(calls, 3, -1), NESSIE_NOT_FOUND);
  for (auto *call : calls) {
    Bytes result;
    EXPECT_EQ(finish(call, &result), call == calls[1] ? NESSIE_NOT_FOUND : NESSIE_OK);
    EXPECT_EQ(result, call == calls[1] ? Bytes() : args);
  }
  EXPECT_EQ(nssi_rt_multicast(runtime_, nullptr, 0, kCEcho, nullptr, 0, nullptr, nullptr), NESSIE_OK);
}

TEST_P(NssiRuntimeInC, AHandlerSeesWhoCalls) {
  Bytes user, again, op;
  EXPECT_EQ(finish(start(kCWho), &user), NESSIE_OK);
  EXPECT_EQ(finish(start(kCWho), &again), NESSIE_OK);
  auto *mine = std::exchange(runtime_, open(true, "operator_credential = " + secret_.to_hex()));
  ASSERT_EQ(nssi_rt_connect(runtime_, nssi_rt_url(server_), 20'000, &service_.peer), NESSIE_OK);
  EXPECT_EQ(finish(start(kCWho), &op), NESSIE_OK);
  EXPECT_EQ(nssi_rt_close(mine), NESSIE_OK);
  ASSERT_EQ(user.size(), 17u);
  EXPECT_EQ(user, again);
  EXPECT_NE(user, op);
  EXPECT_EQ(user[0], std::byte{NSSI_RT_USER});
  EXPECT_EQ(op[0], std::byte{NSSI_RT_OPERATOR});
  EXPECT_EQ(nssi_rt_caller_identity(nullptr, nullptr), NESSIE_INVALID_ARGUMENT);
}

TEST_P(NssiRuntimeInC, AServiceThatStopsWhenItIsDone_AnswersWhatItHasAccepted) {
  auto *accepted = start_held();
  EXPECT_EQ(nssi_rt_stop_when_done(server_, -2), NESSIE_INVALID_ARGUMENT);
  EXPECT_EQ(nssi_rt_stop_when_done(server_, -1), NESSIE_OK);
  int late = NESSIE_OK;
  EXPECT_TRUE(eventually([&] { return (late = finish(start(kCEcho))) != NESSIE_OK; }));
  EXPECT_EQ(late, NESSIE_UNAVAILABLE);
  seen_.may_go = true;
  Bytes result;
  EXPECT_EQ(finish(accepted, &result), NESSIE_OK);
  EXPECT_EQ(result.size(), 4u);
  close_server();
}

INSTANTIATE_TEST_SUITE_P(Over, NssiRuntimeInC, ::testing::Values("inproc", "shm", "ofi"),
                         [](const auto &info) { return info.param; });

TEST(NssiRuntimeInCOptions, ThatCannotBeRead_OpenNothing) {
  nssi_rt_runtime *runtime = nullptr;
  nssi_rt_options options{};
  options.settings = "nssi.timeout";
  EXPECT_EQ(nssi_rt_open(&options, &runtime), NESSIE_INVALID_ARGUMENT);
  EXPECT_NE(std::string(nssi_rt_last_error()).find("name = value"), std::string::npos);
  options.settings = "nssi.timeout = soon";
  EXPECT_EQ(nssi_rt_open(&options, &runtime), NESSIE_INVALID_ARGUMENT);
  options.settings = nullptr;
  options.transports = "pigeon";
  EXPECT_EQ(nssi_rt_open(&options, &runtime), NESSIE_UNSUPPORTED);
  EXPECT_EQ(runtime, nullptr);
}

}  // namespace
}  // namespace nssi::testing

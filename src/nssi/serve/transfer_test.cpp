// SPDX-License-Identifier: BSD-3-Clause
// Transfers that a handler begins, and does not wait for at once.
#include <gtest/gtest.h>

#include <nssi/testing/testing.hpp>

#include <mutex>

namespace nssi::testing {
namespace {

using nnti::Rights;
using std::chrono::seconds;

constexpr OpCode kTry = 100;
constexpr std::size_t kDataBytes = 1 << 20;

/// Where a handler runs.
enum class Place { kDriver, kPool, kShort };

class NssiTransfers : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!available(GetParam())) GTEST_SKIP() << "this machine has no transport " << GetParam();
    start_server("20s");
  }
  void start_server(const char *patience) {
    auto options = options_for(GetParam(), true);
    options.pools = {{"data", 1}};
    options.endpoint.config.set("nssi.reconnect", patience);
    server_ = std::make_unique<ServiceThread>(std::move(options), [this](Runtime &runtime) { offer(runtime); });
    auto client_options = options_for(GetParam(), false);
    client_options.endpoint.config.set("nssi.reconnect", "20s");
    client_ = open_runtime(std::move(client_options));
    peer_ = *client_->connect(server_->runtime->url(), Deadline::in(seconds(20)));
    buffer_ = *client_->allocate(kDataBytes, Rights::kReadWrite);
    std::ranges::copy(pattern(kDataBytes), buffer_.bytes().begin());
  }
  void TearDown() override {
    meet();
    buffer_.reset();
    client_.reset();
    server_.reset();
  }
  /// With a service that waits for callers so long.
  void restart(const char *patience) {
    TearDown();
    start_server(patience);
  }
  /// Calls kTry at that place, whose handler is `handler`; true: what it has returned.
  Call start(Place place, std::function<Status(Request &)> handler) {
    {
      const std::lock_guard lock(mutex_);
      handler_ = std::move(handler);
    }
    CallOptions options;
    options.data = &buffer_;
    return client_->call(at(peer_), kTry + static_cast<OpCode>(place), {}, options);
  }
  void expect_ok(Place place, std::function<Status(Request &)> handler) {
    const auto status = start(place, std::move(handler)).wait();
    meet();
    EXPECT_TRUE(status.ok()) << static_cast<int>(place) << ": " << status.error().to_string();
  }
  Runtime &server() { return *server_->runtime; }

  std::unique_ptr<ServiceThread> server_;
  std::unique_ptr<Runtime> client_;
  PeerId peer_;
  nnti::RegisteredBuffer buffer_;

 private:
  std::function<Status(Request &)> current() {
    const std::lock_guard lock(mutex_);
    return handler_;
  }
  /// What a handler did comes before what its caller does afterwards, also for ThreadSanitizer, which sees no
  /// transport.
  void meet() { const std::lock_guard lock(mutex_); }
  void offer(Runtime &runtime) {
    const auto handle = [this](Request &r) {
      const auto status = current()(r);
      meet();
      (void)(status.ok() ? r.reply() : r.reply_error(status.error()));
    };
    for (auto place : {Place::kDriver, Place::kPool, Place::kShort}) {
      const auto op = kTry + static_cast<OpCode>(place);
      const auto kind = place == Place::kShort ? HandlerKind::kShort : HandlerKind::kFiber;
      Operation operation{kInterface, 0, op, "try" + std::to_string(op), kind, handle};
      if (place == Place::kPool) operation.pool = "data";
      (void)runtime.add_operation(std::move(operation));
    }
  }

  std::mutex mutex_;
  std::function<Status(Request &)> handler_;
};

Status expect(bool is_right, const char *what) { return is_right ? Status() : Error{Code::kInternal, what}; }

TEST_P(NssiTransfers, SeveralAreUnderWayTogether_AndEndInAnyOrder) {
  for (auto place : {Place::kDriver, Place::kPool, Place::kShort})
    expect_ok(place, [](Request &r) -> Status {
      constexpr std::size_t kPieces = 8, kPieceBytes = kDataBytes / kPieces;
      Bytes bytes(kDataBytes);
      std::vector<Transfer> transfers;
      for (std::size_t i = 0; i < kPieces; ++i)
        transfers.push_back(r.start_get(std::span(bytes).subspan(i * kPieceBytes, kPieceBytes), i * kPieceBytes));
      for (auto transfer = transfers.rbegin(); transfer != transfers.rend(); ++transfer)
        if (auto status = transfer->wait(); !status.ok()) return status;
      return expect(bytes == pattern(kDataBytes), "the bytes are others");
    });
}

TEST_P(NssiTransfers, ATestedOneEnds) {
  for (auto place : {Place::kDriver, Place::kPool, Place::kShort})
    expect_ok(place, [](Request &r) -> Status {
      Bytes bytes(kDataBytes);
      auto transfer = r.start_get(bytes);
      if (!eventually([&] { return transfer.test(); })) return Error{Code::kInternal, "it does not end"};
      if (auto status = transfer.wait(); !status.ok()) return status;
      return expect(transfer.test() && bytes == pattern(kDataBytes), "the bytes are others");
    });
}

TEST_P(NssiTransfers, OneThatIsWaitedForBriefly_GoesOn) {
  for (auto place : {Place::kDriver, Place::kPool, Place::kShort})
    expect_ok(place, [](Request &r) -> Status {
      Bytes bytes(kDataBytes);
      auto transfer = r.start_get(bytes);
      auto brief = transfer.wait(Deadline::now());
      if (!brief.ok() && brief.code() != Code::kTimedOut) return brief;
      if (auto status = transfer.wait(); !status.ok()) return status;
      return expect(bytes == pattern(kDataBytes), "the bytes are others");
    });
}

TEST_P(NssiTransfers, OneThatIsDropped_HasEnded) {
  for (auto place : {Place::kDriver, Place::kPool, Place::kShort})
    expect_ok(place, [](Request &r) {
      Bytes bytes(kDataBytes);
      { auto transfer = r.start_get(bytes); }
      return expect(bytes == pattern(kDataBytes), "it has not ended");
    });
}

TEST_P(NssiTransfers, AReplyWaitsForThoseThatWereBegun) {
  static const auto source = Bytes(kDataBytes, std::byte{7});  // the reply may be here before the handler has ended
  for (auto place : {Place::kDriver, Place::kPool, Place::kShort}) {
    std::ranges::fill(buffer_.bytes(), std::byte{0});
    expect_ok(place, [&](Request &r) {
      auto first = r.start_put(std::span(source).first(kDataBytes / 2));
      auto second = r.start_put(std::span(source).last(kDataBytes / 2), kDataBytes / 2);
      return r.reply();
    });
    EXPECT_TRUE(std::ranges::equal(buffer_.bytes(), source));
  }
}

TEST_P(NssiTransfers, WhatCannotBegin_IsToldByItsWait) {
  for (auto place : {Place::kDriver, Place::kPool, Place::kShort}) {
    std::atomic<Code> outside{}, late{}, none{};
    EXPECT_TRUE(start(place,
                      [&](Request &r) -> Status {
                        Bytes bytes(100);
                        auto transfer = r.start_get(bytes, kDataBytes - 99);
                        outside = transfer.test() ? transfer.wait().code() : Code::kOk;
                        none = Transfer().wait().code();
                        (void)r.reply();
                        late = r.start_put(bytes).wait().code();
                        return {};
                      })
                    .wait()
                    .ok());
    EXPECT_TRUE(eventually([&] { return late.load() != Code::kOk; }));
    EXPECT_EQ(outside, Code::kOutOfRange);
    EXPECT_EQ(late, Code::kInvalidArgument);
    EXPECT_EQ(none, Code::kInvalidArgument);
  }
}

TEST_P(NssiTransfers, ACancelledCallIsOverWhenTheLastHasEnded_AlthoughItsHandlerGoesOn) {
  for (auto place : {Place::kDriver, Place::kPool}) {
    Event go_on(server());
    std::atomic<bool> has_begun{false}, is_over{false};
    std::atomic<Code> begun{}, later{};
    auto call = start(place, [&](Request &r) -> Status {
      Bytes bytes(kDataBytes);
      auto one = r.start_get(std::span(bytes).first(kDataBytes / 2));
      auto other = r.start_get(std::span(bytes).last(kDataBytes / 2), kDataBytes / 2);
      has_begun = true;
      (void)go_on.wait();
      begun = one.wait().code();
      later = r.start_get(bytes).wait().code();
      is_over = true;
      return {};
    });
    ASSERT_TRUE(eventually([&] {
      (void)call.test();
      return has_begun.load();
    }));
    call = Call();
    std::ranges::fill(buffer_.bytes(), std::byte{1});  // it is ours again
    EXPECT_FALSE(is_over);
    go_on.set();
    ASSERT_TRUE(eventually([&] { return is_over.load(); }));
    EXPECT_EQ(begun, Code::kOk);
    EXPECT_EQ(later, Code::kCancelled);
  }
}

TEST_P(NssiTransfers, ThoseThatTheLossOfTheConnectionInterrupts_AreRepeated) {
  for (auto place : {Place::kDriver, Place::kPool})
    for (bool is_tested : {false, true}) {
      expect_ok(place, [&](Request &r) -> Status {
        Bytes bytes(kDataBytes);
        auto one = r.start_get(std::span(bytes).first(kDataBytes / 2));
        auto other = r.start_get(std::span(bytes).last(kDataBytes / 2), kDataBytes / 2);
        server().disconnect(r.caller());
        for (auto *each : {&one, &other}) {
          if (is_tested && !eventually([&] { return each->test(); })) return Error{Code::kInternal, "it does not end"};
          if (auto status = each->wait(); !status.ok()) return status;
        }
        return expect(bytes == pattern(kDataBytes), "the bytes are others");
      });
    }
}

TEST_P(NssiTransfers, ACallerThatIsGone_EndsThem) {
  restart("100ms");
  std::atomic<Code> ended{Code::kOk};
  std::atomic<bool> has_begun{false};
  auto call = start(Place::kDriver, [&](Request &r) -> Status {
    Bytes bytes(kDataBytes);
    has_begun = true;
    for (;;) {
      auto one = r.start_get(std::span(bytes).first(kDataBytes / 2));
      auto other = r.start_get(std::span(bytes).last(kDataBytes / 2), kDataBytes / 2);
      auto status = one.wait();
      if (status.ok()) status = other.wait();
      if (!status.ok()) {
        ended = status.code();
        return status;
      }
      server().sleep_until(Deadline::in(std::chrono::milliseconds(1)));
    }
  });
  ASSERT_TRUE(eventually([&] {
    (void)call.test();
    return has_begun.load();
  }));
  buffer_.reset();
  client_.reset();
  EXPECT_TRUE(eventually([&] { return ended.load() != Code::kOk; }));
}

INSTANTIATE_TEST_SUITE_P(Over, NssiTransfers, ::testing::Values("inproc", "shm", "ofi"),
                         [](const auto &info) { return info.param; });

}  // namespace
}  // namespace nssi::testing

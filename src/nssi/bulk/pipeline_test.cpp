// SPDX-License-Identifier: BSD-3-Clause
// Bulk data that are worked on piece by piece.
#include <gtest/gtest.h>

#include <nssi/pipeline.hpp>
#include <nssi/testing/testing.hpp>

#include <mutex>

namespace nssi::testing {
namespace {

using nnti::Rights;
using std::chrono::seconds;

constexpr OpCode kTry = 100;
constexpr std::size_t kPieceBytes = 1000;

class NssiPipeline : public ::testing::TestWithParam<std::string> {
 protected:
  using Try = std::function<Status(Request &)>;
  void SetUp() override {
    if (!available(GetParam())) GTEST_SKIP() << "this machine has no transport " << GetParam();
    auto options = options_for(GetParam(), true);
    options.pools = {{"data", 2}};
    options.endpoint.config.set("nssi.reconnect", "20s");
    server_ = std::make_unique<ServiceThread>(std::move(options), [this](Runtime &runtime) { offer(runtime); });
    auto client_options = options_for(GetParam(), false);
    client_options.endpoint.config.set("nssi.reconnect", "20s");
    client_ = open_runtime(std::move(client_options));
    peer_ = *client_->connect(server_->runtime->url(), Deadline::in(seconds(20)));
  }
  void TearDown() override {
    meet();
    buffer_.reset();
    client_.reset();
    server_.reset();
  }
  Runtime &server() { return *server_->runtime; }
  Call start(bool in_pool, Try handler, CallOptions options = {}) {
    {
      const std::lock_guard lock(mutex_);
      handler_ = std::move(handler);
    }
    if (options.data == nullptr) options.data = &buffer_;
    return client_->call(at(peer_), in_pool ? kTry + 1 : kTry, {}, options);
  }
  /// How `handler` ends, with so many bytes of data.
  Status run(bool in_pool, std::size_t data_bytes, Try handler) {
    buffer_ = *client_->allocate(std::max<std::size_t>(data_bytes, 1), Rights::kReadWrite);
    std::ranges::copy(pattern(data_bytes), buffer_.bytes().begin());
    CallOptions options;
    options.parts = {{&buffer_, 0, data_bytes}};
    auto status = start(in_pool, std::move(handler), options).wait();
    meet();
    return status;
  }
  /// Pulls the data and compares them with the pattern.
  Status check(Request &request, const PipelineOptions &options) {
    Bytes all;
    auto status = pull_in_pieces(
        server(), request,
        [&](std::span<const std::byte> piece, std::uint64_t offset) -> Status {
          if (piece.empty() || piece.size() > options.piece_bytes) return Error{Code::kInternal, "a piece's size"};
          if (offset != options.offset + all.size()) return Error{Code::kInternal, "a piece is out of order"};
          all.insert(all.end(), piece.begin(), piece.end());
          return {};
        },
        options);
    if (!status.ok()) return status;
    const auto size_bytes = std::min<std::uint64_t>(options.size_bytes, request.data_bytes() - options.offset);
    for (std::size_t i = 0; i < all.size(); ++i)
      if (all[i] != pattern_at(options.offset + i)) return Error{Code::kInternal, "the bytes are others"};
    return all.size() == size_bytes ? Status() : Error{Code::kInternal, "bytes are missing"};
  }

  std::unique_ptr<ServiceThread> server_;
  std::unique_ptr<Runtime> client_;
  PeerId peer_;
  nnti::RegisteredBuffer buffer_;

 private:
  void offer(Runtime &runtime) {
    for (bool in_pool : {false, true}) {
      Operation operation{kInterface, 0, in_pool ? kTry + 1 : kTry, "try", HandlerKind::kFiber, [this](Request &r) {
                            const auto status = current()(r);
                            meet();
                            (void)(status.ok() ? r.reply() : r.reply_error(status.error()));
                          }};
      if (in_pool) operation.pool = "data";
      (void)runtime.add_operation(std::move(operation));
    }
  }
  Try current() {
    const std::lock_guard lock(mutex_);
    return handler_;
  }
  /// What a handler did comes before what its caller does afterwards, also for ThreadSanitizer, which sees no
  /// transport.
  void meet() { const std::lock_guard lock(mutex_); }

  std::mutex mutex_;
  Try handler_;
};

TEST_P(NssiPipeline, PiecesComeInOrder_WhateverTheirNumberAndDepth) {
  for (bool in_pool : {false, true})
    for (std::size_t data_bytes : {std::size_t{0}, std::size_t{1}, kPieceBytes - 1, kPieceBytes, kPieceBytes + 1,
                                   3 * kPieceBytes, 20 * kPieceBytes + 7})
      for (std::size_t depth : {1, 2, 5, 100}) {
        const auto status = run(in_pool, data_bytes,
                                [&](Request &r) { return check(r, {.piece_bytes = kPieceBytes, .depth = depth}); });
        EXPECT_TRUE(status.ok()) << data_bytes << " " << depth << ": " << status.error().to_string();
      }
}

TEST_P(NssiPipeline, ARangeOfTheDataIsPulled) {
  for (std::uint64_t offset : {0, 1, 4999, 5000})
    for (std::uint64_t size_bytes : {std::uint64_t{0}, std::uint64_t{1}, 5000 - offset, Part::kRest}) {
      if (offset + 1 > 5000 && size_bytes == 1) continue;
      const PipelineOptions options{.piece_bytes = 700, .offset = offset, .size_bytes = size_bytes};
      const auto status = run(false, 5000, [&](Request &r) { return check(r, options); });
      EXPECT_TRUE(status.ok()) << offset << " " << size_bytes << ": " << status.error().to_string();
    }
}

TEST_P(NssiPipeline, WhatIsProducedArrivesBeforeTheResult) {
  for (bool in_pool : {false, true})
    for (std::size_t data_bytes : {std::size_t{0}, std::size_t{1}, kPieceBytes, 20 * kPieceBytes + 7})
      for (std::size_t depth : {1, 3, 100}) {
        const auto status = run(in_pool, data_bytes, [&](Request &r) {
          const auto produce = [](std::span<std::byte> piece, std::uint64_t offset) {
            for (std::size_t i = 0; i < piece.size(); ++i) piece[i] = ~pattern_at(offset + i);
            return Status();
          };
          return push_in_pieces(server(), r, produce, {.piece_bytes = kPieceBytes, .depth = depth});
        });
        ASSERT_TRUE(status.ok()) << status.error().to_string();
        for (std::size_t i = 0; i < data_bytes; ++i) ASSERT_EQ(buffer_.bytes()[i], ~pattern_at(i)) << i;
      }
}

/// A request that counts the transfers that are begun.
class Counted final : public Request {
 public:
  explicit Counted(Request &request) : it_(request) {}
  int begun = 0;
  Transfer start_get(std::span<std::byte> to, std::uint64_t offset) override {
    return ++begun, it_.start_get(to, offset);
  }
  Transfer start_put(std::span<const std::byte> from, std::uint64_t offset) override {
    return ++begun, it_.start_put(from, offset);
  }
  PeerId caller() const override { return it_.caller(); }
  Role role() const override { return it_.role(); }
  std::span<const std::byte, 16> caller_identity() const override { return it_.caller_identity(); }
  OpCode op() const override { return it_.op(); }
  std::span<const std::byte> args() const override { return it_.args(); }
  std::uint64_t data_bytes() const override { return it_.data_bytes(); }
  Status get_data(std::span<std::byte> to, std::uint64_t offset) override { return it_.get_data(to, offset); }
  Status put_data(std::span<const std::byte> from, std::uint64_t offset) override { return it_.put_data(from, offset); }
  Result<int> take_descriptor(std::uint64_t key) override { return it_.take_descriptor(key); }
  Status give_descriptor(std::uint64_t key, int file) override { return it_.give_descriptor(key, file); }
  Status reply(std::span<const std::byte> result) override { return it_.reply(result); }
  Status reply(std::size_t size_bytes, const Encoder &encode) override { return it_.reply(size_bytes, encode); }
  Status reply_error(const Error &error) override { return it_.reply_error(error); }
  Deadline deadline() const override { return it_.deadline(); }
  Status check() const override { return it_.check(); }
  Status wait(Event &event, Deadline until) override { return it_.wait(event, until); }
  Status sleep_until(Deadline until) override { return it_.sleep_until(until); }

 private:
  Request &it_;
};

TEST_P(NssiPipeline, WhileOnePieceIsWorkedOn_AsManyAreUnderWayAsItsDepthSays) {
  for (const std::size_t depth : {1, 2, 3}) {
    const PipelineOptions options{.piece_bytes = kPieceBytes, .depth = depth};
    const auto status = run(false, 10 * kPieceBytes, [&](Request &r) -> Status {
      Counted counted(r);
      int worked_on = 0;
      const auto work = [&](auto, std::uint64_t) -> Status {
        ++worked_on;
        const bool is_at_the_end = worked_on + static_cast<int>(depth) > 10;
        if (is_at_the_end || counted.begun == worked_on + static_cast<int>(depth)) return {};
        return Error{Code::kInternal, "under way: " + std::to_string(counted.begun - worked_on)};
      };
      return pull_in_pieces(server(), counted, work, options);
    });
    EXPECT_TRUE(status.ok()) << depth << ": " << status.error().message;
  }
}

TEST_P(NssiPipeline, AnErrorOfTheCallbackEndsIt) {
  for (bool in_pool : {false, true}) {
    int calls = 0;
    const auto fail_at_the_third = [&](auto, std::uint64_t) -> Status {
      return ++calls < 3 ? Status() : Error{Code::kIo, "the disk is full"};
    };
    const PipelineOptions options{.piece_bytes = kPieceBytes, .depth = 4};
    const auto pull = [&](Request &r) { return pull_in_pieces(server(), r, fail_at_the_third, options); };
    EXPECT_EQ(run(in_pool, 20 * kPieceBytes, pull).code(), Code::kIo);
    EXPECT_EQ(std::exchange(calls, 0), 3);
    const auto push = [&](Request &r) { return push_in_pieces(server(), r, fail_at_the_third, options); };
    EXPECT_EQ(run(in_pool, 20 * kPieceBytes, push).code(), Code::kIo);
    EXPECT_EQ(calls, 3);
  }
}

TEST_P(NssiPipeline, AnExceptionOfTheCallbackEndsIt_AndTheNextOneGoesWell) {
  for (bool in_pool : {false, true}) {
    const auto throws = [&](Request &r) {
      return pull_in_pieces(server(), r, [](auto, auto) -> Status { throw std::runtime_error("no more ink"); },
                            {.piece_bytes = kPieceBytes});
    };
    const auto status = run(in_pool, 20 * kPieceBytes, throws);
    EXPECT_EQ(status.code(), Code::kInternal);
    EXPECT_NE(status.error().message.find("no more ink"), std::string::npos);
    EXPECT_TRUE(
        run(in_pool, 20 * kPieceBytes, [&](Request &r) { return check(r, {.piece_bytes = kPieceBytes}); }).ok());
  }
}

TEST_P(NssiPipeline, WhatCannotBeDone_IsAnErrorBeforeAnythingMoves) {
  const auto code = [&](const PipelineOptions &options) {
    return run(false, 5000, [&](Request &r) { return check(r, options); }).code();
  };
  EXPECT_EQ(code({.piece_bytes = 0}), Code::kInvalidArgument);
  EXPECT_EQ(code({.depth = 0}), Code::kInvalidArgument);
  EXPECT_EQ(code({.offset = 5001}), Code::kOutOfRange);
  EXPECT_EQ(code({.offset = 1, .size_bytes = 5000}), Code::kOutOfRange);
  EXPECT_EQ(code({.offset = 2, .size_bytes = Part::kRest - 1}), Code::kOutOfRange);
  EXPECT_EQ(code({.piece_bytes = ~std::size_t{0}, .depth = ~std::size_t{0}}), Code::kOk);
}

TEST_P(NssiPipeline, ItGoesOnAcrossTheLossOfTheConnection) {
  for (bool in_pool : {false, true}) {
    const auto status = run(in_pool, 20 * kPieceBytes, [&](Request &r) -> Status {
      std::size_t right = 0;
      const auto consume = [&](std::span<const std::byte> piece, std::uint64_t offset) {
        if (offset == 3 * kPieceBytes) server().disconnect(r.caller());
        for (std::size_t i = 0; i < piece.size(); ++i) right += piece[i] == pattern_at(offset + i);
        return Status();
      };
      auto status = pull_in_pieces(server(), r, consume, {.piece_bytes = kPieceBytes, .depth = 3});
      if (!status.ok() || right == 20 * kPieceBytes) return status;
      return Error{Code::kInternal, "the bytes are others"};
    });
    EXPECT_TRUE(status.ok()) << status.error().to_string();
  }
}

TEST_P(NssiPipeline, ACancelledCallEndsIt) {
  for (bool in_pool : {false, true}) {
    buffer_ = *client_->allocate(20 * kPieceBytes, Rights::kReadWrite);
    Event go_on(server());
    std::atomic<bool> has_begun{false};
    std::atomic<Code> ended{Code::kOk};
    auto call = start(in_pool, [&](Request &r) -> Status {
      const auto consume = [&](auto, auto) {
        has_begun = true;
        return go_on.wait();
      };
      auto status = pull_in_pieces(server(), r, consume, {.piece_bytes = kPieceBytes});
      ended = status.code();
      return status;
    });
    ASSERT_TRUE(eventually([&] {
      (void)call.test();
      return has_begun.load();
    }));
    call = Call();
    go_on.set();
    ASSERT_TRUE(eventually([&] { return ended.load() != Code::kOk; }));
    EXPECT_EQ(ended, Code::kCancelled);
  }
}

TEST_P(NssiPipeline, InPlace_PiecesArePartsOfTheCallersMemory) {
  const bool maps = client_->can_view(peer_);
  const auto status = run(false, 20 * kPieceBytes, [&](Request &r) -> Status {
    const auto *view = r.view_data();
    if ((view != nullptr) != maps) return Error{Code::kInternal, "whether it is seen"};
    std::size_t in_place = 0;
    const auto consume = [&](std::span<const std::byte> piece, std::uint64_t offset) {
      in_place += view != nullptr && piece.data() == view->bytes().data() + offset;
      return Status();
    };
    auto status = pull_in_pieces(server(), r, consume, {.piece_bytes = kPieceBytes, .in_place = true});
    if (!status.ok()) return status;
    if (in_place != (maps ? 20 : 0)) return Error{Code::kInternal, "it was copied"};
    return check(r, {.piece_bytes = kPieceBytes, .offset = 5, .in_place = true});
  });
  EXPECT_TRUE(status.ok()) << status.error().to_string();
}

TEST_P(NssiPipeline, ManyAtOnceDoNotGetInEachOthersWay) {
  auto buffer = *client_->allocate(50'000, Rights::kReadWrite);
  std::ranges::copy(pattern(50'000), buffer.bytes().begin());
  CallOptions options;
  options.data = &buffer;
  for (bool in_pool : {false, true}) {
    std::vector<Call> calls;
    for (int i = 0; i < 40; ++i)
      calls.push_back(start(
          in_pool, [&](Request &r) { return check(r, {.piece_bytes = kPieceBytes}); }, options));
    for (auto &call : calls) {
      const auto status = call.wait();
      EXPECT_TRUE(status.ok()) << status.error().to_string();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Over, NssiPipeline, ::testing::Values("inproc", "shm", "ofi"),
                         [](const auto &info) { return info.param; });

}  // namespace
}  // namespace nssi::testing

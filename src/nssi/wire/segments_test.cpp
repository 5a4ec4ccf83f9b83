// SPDX-License-Identifier: BSD-3-Clause
// Data in parts of buffers: what a handler sees of them, and what becomes of lists that are none.
#include <gtest/gtest.h>

#include <nssi/testing/testing.hpp>
#include <nssi/wire/wire.hpp>

#include <deque>
#include <random>

namespace nssi::testing {
namespace {

using nnti::Rights;
using std::chrono::seconds;

enum DataOp : OpCode { kGet = 100, kPut, kGetInPool, kPutInPool, kGetTwice, kGetTwiceInPool, kSizeAndView };

/// What a handler is to move, of a request's data.
struct Range {
  std::uint64_t offset = 0, size_bytes = 0;
  template <class A> void xdr(A &a) { a(offset, size_bytes); }
};

void reply(Request &request, const Status &status, std::span<const std::byte> result = {}) {
  (void)(status.ok() ? request.reply(result) : request.reply_error(status.error()));
}

void get(Request &request) {
  const auto range = *xdr::decode<Range>(request.args().last(16));
  Bytes bytes(range.size_bytes);
  reply(request, request.get_data(bytes, range.offset), bytes);
}

void put(Request &request) {
  const auto range = *xdr::decode<Range>(request.args().last(16));
  reply(request, request.put_data(pattern(range.size_bytes), range.offset));
}

/// Ends the connection to the caller between two gets.
void get_twice(Runtime &runtime, Request &request) {
  Bytes first(request.data_bytes()), second(request.data_bytes());
  auto status = request.get_data(first);
  runtime.disconnect(request.caller());
  if (status.ok()) status = request.get_data(second);
  reply(request, status, xdr::encode(first == pattern(first.size()) && second == first));
}

void add_data_operations(Runtime &runtime) {
  const auto add = [&](OpCode op, Handler handler, const char *pool = "") {
    Operation operation{kInterface, 0, op, "data" + std::to_string(op), HandlerKind::kFiber, std::move(handler)};
    operation.pool = pool;
    (void)runtime.add_operation(std::move(operation));
  };
  add(kGet, get);
  add(kPut, put);
  add(kGetInPool, get, "data");
  add(kPutInPool, put, "data");
  add(kGetTwice, [&runtime](Request &r) { get_twice(runtime, r); });
  add(
      kGetTwiceInPool, [&runtime](Request &r) { get_twice(runtime, r); }, "data");
  add(kSizeAndView, [](Request &r) {
    const auto *view = r.view_data();
    const auto expected = pattern(r.data_bytes());
    const bool is_seen = view != nullptr && std::ranges::equal(view->bytes(), expected);
    (void)r.reply(xdr::encode(Range{r.data_bytes(), is_seen ? 1u : 0u}));
  });
}

RuntimeOptions with_pool(const std::string &transport) {
  auto options = options_for(transport, true);
  options.pools = {{"data", 2}};
  options.endpoint.config.set("nssi.reconnect", "20s");
  return options;
}

class NssiSegments : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!available(GetParam())) GTEST_SKIP() << "this machine has no transport " << GetParam();
    server_ = std::make_unique<ServiceThread>(with_pool(GetParam()), add_data_operations);
    auto options = options_for(GetParam(), false);
    options.endpoint.config.set("nssi.reconnect", "20s");
    client_ = open_runtime(std::move(options));
    auto peer = client_->connect(server_->runtime->url(), Deadline::in(seconds(20)));
    ASSERT_TRUE(peer.ok()) << peer.error().to_string();
    peer_ = *peer;
  }
  void TearDown() override {
    parts_.clear();
    buffers_.clear();
    client_.reset();
    server_.reset();
  }
  /// A buffer of zeros, which lives as long as the client.
  nnti::RegisteredBuffer &make_buffer(std::size_t size_bytes, Rights rights = Rights::kReadWrite) {
    buffers_.push_back(*client_->allocate(size_bytes, rights));
    return buffers_.back();
  }
  /// The data are `count` parts of up to `most_bytes` each, alternately of two buffers, with gaps between them.
  void scatter(std::size_t count, std::size_t most_bytes) {
    std::mt19937 random(static_cast<unsigned>(count));
    std::vector<std::size_t> sizes(count);
    for (auto &size : sizes) size = 1 + random() % most_bytes;
    for (auto rights : {Rights::kReadWrite, Rights::kReadWrite}) make_buffer(count * (most_bytes + 3), rights);
    std::size_t at = 1;
    for (std::size_t i = 0; i < count; ++i, at += most_bytes + 2) parts_.push_back({&buffers_[i % 2], at, sizes[i]});
  }
  /// The bytes of the parts, one after the other.
  std::vector<std::byte *> data() const {
    std::vector<std::byte *> all;
    for (const auto &part : parts_)
      for (std::uint64_t i = 0; i < part.size_bytes; ++i) all.push_back(&part.buffer->bytes()[part.offset + i]);
    return all;
  }
  void fill() const {
    for (std::size_t i = 0; auto *byte : data()) *byte = pattern_at(i++);
  }
  Bytes copy_of(std::uint64_t offset, std::uint64_t size_bytes) const {
    Bytes bytes;
    const auto all = data();
    for (auto i = offset; i < offset + size_bytes; ++i) bytes.push_back(*all[i]);
    return bytes;
  }
  Call call(OpCode op, const Bytes &args = {}) {
    CallOptions options;
    options.parts = parts_;
    return client_->call(at(peer_), op, args, options);
  }
  Call call(OpCode op, const Range &range) { return call(op, xdr::encode(range)); }
  Status status_of(OpCode op, const Range &range) { return call(op, range).wait(); }
  /// What view_data() and data_bytes() gave: whether it was seen, and the size.
  std::pair<bool, std::uint64_t> seen() {
    auto looking = call(kSizeAndView);
    EXPECT_TRUE(looking.wait().ok());
    const auto answer = *xdr::decode<Range>(looking.result());
    return {answer.size_bytes == 1, answer.offset};
  }
  void expect_got(OpCode op, const Range &range) {
    auto getting = call(op, range);
    const auto status = getting.wait();
    ASSERT_TRUE(status.ok()) << status.error().to_string();
    EXPECT_EQ(getting.result(), copy_of(range.offset, range.size_bytes)) << range.offset << " " << range.size_bytes;
  }

  std::unique_ptr<ServiceThread> server_;
  std::unique_ptr<Runtime> client_;
  PeerId peer_;
  std::deque<nnti::RegisteredBuffer> buffers_;
  std::vector<Part> parts_;
};

TEST_P(NssiSegments, APartOfABuffer_IsAllThatTheHandlerSees) {
  auto &buffer = make_buffer(10000);
  for (std::uint64_t offset : {0, 1, 4096, 9000}) {
    parts_ = {{&buffer, offset, 1000}};
    fill();
    EXPECT_EQ(seen().second, 1000u);
    expect_got(kGet, {0, 1000});
    expect_got(kGet, {123, 456});
    EXPECT_EQ(status_of(kGet, {1, 1000}).code(), Code::kOutOfRange);
    EXPECT_EQ(status_of(kGet, {1001, 0}).code(), Code::kOutOfRange);
  }
}

TEST_P(NssiSegments, APartWithoutASize_GoesToTheEndOfTheCallsData) {
  auto &buffer = make_buffer(5000);
  std::ranges::copy(pattern(5000), buffer.bytes().begin());
  CallOptions options;
  options.data = &buffer;
  options.parts = {{nullptr, 3000}};
  auto getting = client_->call(at(peer_), kGet, xdr::encode(Range{0, 2000}), options);
  ASSERT_TRUE(getting.wait().ok());
  EXPECT_TRUE(std::ranges::equal(getting.view(), buffer.bytes().subspan(3000)));
}

TEST_P(NssiSegments, ScatteredParts_AreOneRange) {
  scatter(7, 3000);
  fill();
  const auto whole = data().size();
  std::mt19937 random(1);
  for (auto op : {kGet, kGetInPool}) {
    expect_got(op, {0, whole});
    for (int i = 0; i < 20; ++i) {
      const auto offset = random() % whole;
      expect_got(op, {offset, random() % (whole - offset)});
    }
  }
}

TEST_P(NssiSegments, WhatIsPut_GoesToThePartsAndNowhereElse) {
  for (auto op : {kPut, kPutInPool}) {
    parts_.clear();
    buffers_.clear();
    scatter(9, 500);
    const auto whole = data().size();
    ASSERT_TRUE(status_of(op, {10, whole - 20}).ok());
    auto expected = pattern(whole - 20);
    expected.insert(expected.begin(), 10, std::byte{0});
    expected.resize(whole);
    EXPECT_EQ(copy_of(0, whole), expected);
    for (auto *byte : data()) *byte = std::byte{0};
    for (const auto &buffer : buffers_)
      EXPECT_TRUE(std::ranges::all_of(buffer.bytes(), [](std::byte b) { return b == std::byte{0}; }));
  }
}

TEST_P(NssiSegments, LongLists_AreFetched) {
  scatter(20000, 20);
  fill();
  const auto whole = data().size();
  for (auto op : {kGet, kGetInPool}) expect_got(op, {17, whole - 17});
  for (auto op : {kPull, kPullShort}) {
    auto pulling = call(op);
    ASSERT_TRUE(pulling.wait().ok());
    EXPECT_TRUE(*xdr::decode<bool>(pulling.result()));
  }
  ASSERT_TRUE(status_of(kPutInPool, {0, whole}).ok());
  EXPECT_EQ(copy_of(0, whole), pattern(whole));
}

TEST_P(NssiSegments, ListsAndArgumentsOfEverySize_FindTheirPlace) {
  const auto inlined = client_->max_inline_args(peer_);
  for (std::size_t count : {2, 10, 45, 46, 100, 1000}) {
    parts_.clear();
    buffers_.clear();
    scatter(count, 10);
    fill();
    const auto whole = data().size();
    for (auto args_bytes :
         {std::size_t{16}, inlined - 1100, inlined - 900, inlined, inlined + 4, std::size_t{1} << 20}) {
      Bytes args(args_bytes / 4 * 4);
      std::ranges::copy(xdr::encode(Range{0, whole}), args.end() - 16);
      auto getting = call(kGet, args);
      ASSERT_TRUE(getting.wait().ok()) << count << " " << args_bytes;
      ASSERT_EQ(getting.result(), pattern(whole)) << count << " " << args_bytes;
    }
  }
}

TEST_P(NssiSegments, AsManyPartsAsThereMayBe_AndOneMore) {
  auto &buffer = make_buffer(2 * wire::kMostSegments + 2);
  for (std::uint64_t i = 0; i < wire::kMostSegments; ++i) parts_.push_back({&buffer, 2 * i, 1});
  fill();
  expect_got(kGet, {0, wire::kMostSegments});
  parts_.push_back({&buffer, 2 * wire::kMostSegments, 1});
  EXPECT_EQ(status_of(kGet, {0, 1}).code(), Code::kInvalidArgument);
  parts_.back() = {&buffer, 2 * wire::kMostSegments - 1, 1};
  EXPECT_TRUE(status_of(kGet, {0, 1}).ok()) << "it follows the one before: they are one";
}

TEST_P(NssiSegments, PartsThatAreNone_AreErrors) {
  auto &buffer = make_buffer(100);
  const auto code = [&](const Part &part) {
    parts_ = {{&buffer, 0, 10}, part};
    return status_of(kGet, {0, 1}).code();
  };
  const nnti::RegisteredBuffer invalid;
  EXPECT_EQ(code({&buffer, 90, 11}), Code::kOutOfRange);
  EXPECT_EQ(code({&buffer, 101}), Code::kOutOfRange);
  EXPECT_EQ(code({&buffer, Part::kRest, Part::kRest}), Code::kOutOfRange);
  EXPECT_EQ(code({&buffer, 2, Part::kRest - 1}), Code::kOutOfRange);
  EXPECT_EQ(code({nullptr, 0, 1}), Code::kInvalidArgument);
  EXPECT_EQ(code({&invalid, 0, 0}), Code::kInvalidArgument);
  EXPECT_EQ(code({&buffer, 100}), Code::kOk) << "an empty one";
  parts_ = {{&buffer, 50, 0}};
  EXPECT_EQ(status_of(kGet, {0, 0}).code(), Code::kOk);
  EXPECT_EQ(status_of(kGet, {0, 1}).code(), Code::kInvalidArgument) << "there are no data";
  CallOptions one_way;
  one_way.one_way = true;
  one_way.parts = parts_;
  EXPECT_EQ(client_->call(at(peer_), kNoop, {}, one_way).wait().code(), Code::kInvalidArgument);
}

TEST_P(NssiSegments, APartWithoutTheRight_IsRefusedBeforeAnythingMoves) {
  auto &both = make_buffer(100);
  auto &read_only = make_buffer(100, Rights::kRemoteRead);
  parts_ = {{&both, 10, 50}, {&read_only, 0, 50}};
  EXPECT_EQ(status_of(kPut, {0, 100}).code(), Code::kRefused);
  EXPECT_TRUE(std::ranges::all_of(both.bytes(), [](std::byte b) { return b == std::byte{0}; }));
  EXPECT_TRUE(status_of(kPut, {0, 50}).ok()) << "it does not touch the other";
  EXPECT_TRUE(status_of(kGet, {0, 100}).ok());
}

TEST_P(NssiSegments, OnePartIsSeenInPlace_WhereTheTransportMapsIt_AndSeveralAreNot) {
  const bool maps = client_->can_view(peer_);
  auto &buffer = make_buffer(100'000);
  parts_ = {{&buffer, 777, 50'000}};
  fill();
  EXPECT_EQ(seen(), std::pair(maps, std::uint64_t{50'000}));
  parts_.push_back({&buffer, 777 + 50'000, 10});
  fill();
  EXPECT_EQ(seen(), std::pair(maps, std::uint64_t{50'010})) << "they follow each other";
  parts_.push_back({&buffer, 777 + 50'011, 10});
  fill();
  EXPECT_EQ(seen(), std::pair(false, std::uint64_t{50'020}));
}

TEST_P(NssiSegments, ScatteredDataSurviveTheLossOfTheConnection) {
  for (std::size_t count : {3, 3000}) {
    parts_.clear();
    buffers_.clear();
    scatter(count, 60'000 / count);
    fill();
    for (auto op : {kGetTwice, kGetTwiceInPool}) {
      auto getting = call(op);
      const auto status = getting.wait();
      ASSERT_TRUE(status.ok()) << count << ": " << status.error().to_string();
      EXPECT_TRUE(*xdr::decode<bool>(getting.result()));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Over, NssiSegments, ::testing::Values("inproc", "shm", "ofi"),
                         [](const auto &info) { return info.param; });

// --- callers that lie -------------------------------------------------------------------------------------------------

/// Sends requests of its own making.
class Forger final : public nnti::EventSink {
 public:
  explicit Forger(const std::string &url) {
    endpoint_ = *nnti::Endpoint::open(options_for("inproc", false).endpoint, *this);
    peer_ = *endpoint_->connect(url, Deadline::in(seconds(20)));
    send(wire::Hello());
    memory_ = *endpoint_->allocate(8192, Rights::kReadWrite);
  }
  wire::Buffer buffer() { return {*memory_.describe_for(peer_)}; }
  std::span<std::byte> bytes() { return memory_.bytes(); }
  /// How a request for `range` of the data ends.
  Code outcome(wire::Request request, const Range &range) {
    const auto args = xdr::encode(range);
    request.prefix.id = std::uint64_t{++uses_} << 32;
    request.interface = kInterface;
    request.op = kGet;
    request.args = args;
    send(request);
    EXPECT_TRUE(eventually([&] {
      endpoint_->progress();
      return answered_ == request.prefix.id;
    }));
    return code_;
  }
  Code outcome(const wire::Segments &segments, const Range &range) {
    const auto list = xdr::encode(segments);
    wire::Request request;
    request.segments = list;
    return outcome(request, range);
  }
  /// With a list that is `size_bytes` at the beginning of the forger's memory.
  Code outcome(std::uint64_t size_bytes, const Range &range) {
    wire::Request request;
    request.data = buffer();
    request.data->remote.size_bytes = size_bytes;
    request.data_is_list.emplace();
    return outcome(request, range);
  }

 private:
  template <class Message> void send(const Message &message) { (void)endpoint_->send(peer_, xdr::encode(message)); }
  void on_message(PeerId, std::span<const std::byte> message) override {
    wire::Result result;
    if (!wire::decode_result(message, result).ok()) return;
    answered_ = result.prefix.id;
    code_ = result.failure ? wire::to_error(*result.failure).code : Code::kOk;
  }
  void on_peer_lost(PeerId, const Error &) override {}

  std::unique_ptr<nnti::Endpoint> endpoint_;
  PeerId peer_;
  nnti::RegisteredBuffer memory_;
  std::uint32_t uses_ = 0;
  std::uint64_t answered_ = 0;
  Code code_ = Code::kOk;
};

class NssiForgedSegments : public ::testing::Test {
 protected:
  ServiceThread server_{with_pool("inproc"), add_data_operations};
  Forger forger_{server_.runtime->url()};
};

TEST_F(NssiForgedSegments, AListThatIsNone_IsABadMessage) {
  const auto buffer = forger_.buffer();
  EXPECT_EQ(forger_.outcome({{buffer}, {{0, 1, 8191}}}, {0, 1}), Code::kOk);
  EXPECT_EQ(forger_.outcome({{buffer}, {{0, 1, 8192}}}, {0, 1}), Code::kBadMessage);
  EXPECT_EQ(forger_.outcome({{buffer}, {{1, 0, 1}}}, {0, 1}), Code::kBadMessage);
}

TEST_F(NssiForgedSegments, ALongListIsCheckedLikewise) {
  const auto list = xdr::encode(wire::Segments{{forger_.buffer()}, {{0, 1, 2}, {0, 5, 3}}});
  std::ranges::copy(list, forger_.bytes().begin());
  EXPECT_EQ(forger_.outcome(list.size(), {0, 5}), Code::kOk);
  EXPECT_EQ(forger_.outcome(list.size(), {0, 6}), Code::kOutOfRange);
  EXPECT_EQ(forger_.outcome(list.size() - 4, {0, 1}), Code::kBadMessage);
  EXPECT_EQ(forger_.outcome(list.size() + 4, {0, 1}), Code::kBadMessage);
  EXPECT_EQ(forger_.outcome(std::uint64_t{0}, {0, 1}), Code::kBadMessage);
  EXPECT_EQ(forger_.outcome(wire::kMostListBytes + 1, {0, 1}), Code::kBadMessage) << "no memory is spent on it";
  EXPECT_EQ(forger_.outcome(8193, {0, 1}), Code::kOutOfRange) << "there is not so much at the caller";
}

TEST_F(NssiForgedSegments, ASegmentOfABufferThatIsNone_EndsTheTransferOnly) {
  auto forged = forger_.buffer(), longer = forger_.buffer();
  forged.remote.key ^= 1;
  longer.remote.size_bytes += 1;
  const auto buffer = forger_.buffer();
  EXPECT_EQ(forger_.outcome({{buffer, forged}, {{0, 0, 8}, {1, 0, 8}}}, {0, 16}), Code::kRefused);
  EXPECT_EQ(forger_.outcome({{buffer, longer}, {{0, 0, 8}, {1, 8192, 1}}}, {0, 9}), Code::kOutOfRange);
  EXPECT_EQ(forger_.outcome({{buffer, forged}, {{0, 0, 8}, {1, 0, 8}}}, {0, 8}), Code::kOk) << "it is not touched";
}

}  // namespace
}  // namespace nssi::testing
